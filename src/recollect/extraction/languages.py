"""The languages that facts are learned from without a model, and what each is called."""

from __future__ import annotations

from collections.abc import Mapping

ENGLISH = "en"
# What each language that rules are written for is called.
LANGUAGES: Mapping[str, str] = {
    ENGLISH: "English",
    "de": "German",
    "es": "Spanish",
    "fr": "French",
    "pt": "Portuguese",
    "it": "Italian",
    "nl": "Dutch",
}


def named_languages() -> str:
    """All of them, as they stand in a sentence."""
    *languages, last = LANGUAGES.values()
    return f"{', '.join(languages)} and {last}"
