"""Phase 1: from the new records of a session to its memory and to facts with sources."""
