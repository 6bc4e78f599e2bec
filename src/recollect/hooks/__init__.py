"""Coding agents that call a command at their turning points: what they are told, what is kept.

`events` has the words, `reading` makes them of what an agent sends, `telling` says what is worth
knowing, `capturing` keeps what was said; `deadline`, `journal` and `errands` see to it that no
agent ever waits, fails or is spoken over. `settings_text` and `installing` edit agents' settings.
"""
