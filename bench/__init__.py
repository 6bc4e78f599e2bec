"""What Recollect costs, as ratios in one run: `python -m bench`. The raw database is the limit."""
