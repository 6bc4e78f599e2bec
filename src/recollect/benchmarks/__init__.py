"""Benchmarks that ship: what memory is worth on public data, measured through a real store.

`recollect bench recall` says what is found and what a model is told, `recollect bench answers` how
well it answers from that. Data are read from where the user keeps them, never kept here;
baselines run beside recall on the same texts, and files are never mixed with one another.
"""
