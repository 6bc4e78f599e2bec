"""Other programs' histories as sessions: logs, exports and folders, read as streams and only once.

`items` has the words; a source (`claude_code`, `codex`, …) turns what stands in a file into items,
and is pure; `running` stores them batch by batch, `watching` keeps up with files that grow.
"""
