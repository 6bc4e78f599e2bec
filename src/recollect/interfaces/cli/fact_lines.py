"""Until all are converted."""

from recollect.interfaces.cli.facts import source_in_words as source_in_words
from recollect.interfaces.cli.facts import standing as standing
