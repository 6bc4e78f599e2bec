"""Where everything is kept: one protocol, two databases behind it, and the suite both pass."""
