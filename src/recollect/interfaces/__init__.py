"""The ways in from outside: each one translates, none of them decides."""
