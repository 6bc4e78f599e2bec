"""Benchmarks that ship: what recall is worth on public data, measured through a real store.

`recollect bench recall` runs them. Data are read from where the user keeps them, never kept here;
baselines run beside recall on the same texts, and files are never mixed with one another.
"""
