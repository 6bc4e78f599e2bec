"""Topic pages of memory: rendered from facts, and from nothing else."""
