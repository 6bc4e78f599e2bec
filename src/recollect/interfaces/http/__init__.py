"""The HTTP API: one table of routes, and the checks and limits that apply to all of them."""
