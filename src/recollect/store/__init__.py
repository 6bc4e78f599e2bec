"""Storage: one protocol and its two databases, SQLite and PostgreSQL."""
