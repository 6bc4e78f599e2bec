"""The extractor that needs no model: rules, kept as data per language."""

from recollect.extraction.rules.extractor import RuleExtractor

__all__ = ["RuleExtractor"]
