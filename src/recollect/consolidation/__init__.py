"""Consolidation, phase 2: one generation of memory per space, made of what sessions came to."""
