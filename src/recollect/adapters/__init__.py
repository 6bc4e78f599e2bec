"""Recollect as the memory of other people's agents and frameworks."""
