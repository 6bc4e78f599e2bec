"""The HTTP API: one table of routes, and what is around every one of them."""
