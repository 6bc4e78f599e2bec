"""Observation of verbs and their actors, never of the content of conversations."""
