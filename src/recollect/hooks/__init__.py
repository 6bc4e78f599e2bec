"""Coding agents that call a command at their turning points: what they are told, what is kept.

`events` has the words and reads what an agent sends, `context` says what is worth knowing,
`capturing` keeps what was said, `process` sees to it that no agent ever waits, fails or is spoken
over, and `installing` edits agents' settings.
"""
