"""Control over whole stores: archives, migration, backups and examination.

Functions over a store and its two databases; nothing here is needed to remember or to recall.
"""
