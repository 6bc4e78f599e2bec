"""Redaction: replaces secrets in text and values by typed placeholders.

What counts as a secret is data (`rules.toml`, and a file of the user's). Redaction is a pure
function of the text, the rules, the allowed values and the salt of a store, and takes time linear
in the text. What it wrote it leaves alone: redacting twice changes nothing.
"""

from recollect.redaction.loading import load_redactor
from recollect.redaction.redactor import Finding, Redactor

__all__ = ["Finding", "Redactor", "load_redactor"]
