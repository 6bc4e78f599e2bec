"""Consolidation, phase 2: makes one generation of memory per space from its extracted sessions."""
