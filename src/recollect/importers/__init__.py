"""Imports other programs' histories as sessions: logs, exports and folders, as streams, once each.

`items` has the types; a source (`claude_code`, `codex`, …) is pure and turns the content of a file
into items; `running` stores them in batches and keeps up with files that grow.
"""
