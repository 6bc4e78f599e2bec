"""Recall: from a question in any words to the few entries worth reading, with reasons."""
