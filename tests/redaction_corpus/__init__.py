"""Texts of our own making with and without secrets, from a seed; every secret in them is invented.

Nothing here is a credential: secrets are put together when the corpus is made, so that no scanner
of repositories finds one. Contexts come in two halves. The rules were tuned on the first; the
second was written before the rules and is for measuring. It was no secret to their author: its
score was watched, and a fall of it once led to a repair. A few formats were added to both halves
after the rules, and to the benign texts of the first what earlier rules had wrongly taken.
"""
