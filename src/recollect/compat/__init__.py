"""Recollect under the verbs of other memory libraries, for people who come from there."""
