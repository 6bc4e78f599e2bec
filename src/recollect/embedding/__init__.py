"""Embedding: texts as vectors, by a provider over HTTP or by a table on this machine."""
