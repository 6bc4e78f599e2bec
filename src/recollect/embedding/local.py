"""Embeddings on this machine: the mean of what a table says of each piece of a text.

The table and the vocabulary are files of the package `wordllama`. They are read as they lie there:
its own loader asks the network and brings much that is not needed.
"""

from __future__ import annotations

import importlib.util
import json
import mmap
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from recollect.embedding.protocol import Embedded, cut, never
from recollect.errors import MissingExtra

BLANK = "▁"  # how the vocabulary writes a blank
WORDS_KEPT = 32_768
WORD_CHARS_MAX = 32  # longer ones are taken in parts: the work grows with the square

# Letters and digits, or marks, each with the blanks before them: the vocabulary has hardly a piece
# that reaches across.
_PART = rf"[^\W_]{{1,{WORD_CHARS_MAX}}}|[^\w{BLANK}]{{1,{WORD_CHARS_MAX}}}|_"
_WORD = re.compile(rf"{BLANK}{{0,{WORD_CHARS_MAX}}}(?:{_PART})|{BLANK}{{1,{WORD_CHARS_MAX}}}")


class Pieces:
    """Cuts texts into pieces. Nothing in it changes but the memory of words: threads may share."""

    def __init__(self, vocabulary: Mapping[str, int], merges: list[str]) -> None:
        self.vocabulary = vocabulary
        self._ranks = {pair: rank for rank, pair in enumerate(merges)}
        self._of_word = lru_cache(WORDS_KEPT)(self._numbered)

    def of(self, text: str) -> Iterator[int]:
        """The numbers of a text's pieces, in order; none for an empty text."""
        if text:
            for word in _WORD.findall(BLANK + text.replace(" ", BLANK)):
                yield from self._of_word(word)

    def _numbered(self, word: str) -> tuple[int, ...]:
        numbers: list[int] = []
        for part in self._merged(word):
            known = self.vocabulary.get(part)
            if known is not None:
                numbers.append(known)
                continue
            spelled = (self.vocabulary.get(f"<0x{byte:02X}>") for byte in part.encode())
            numbers += [number for number in spelled if number is not None]
        return tuple(numbers)

    def _merged(self, word: str) -> list[str]:
        """The word's characters, neighbours joined as long as the vocabulary knows a pair."""
        if word in self.vocabulary:
            return [word]
        parts, none = list(word), len(self._ranks)
        while len(parts) > 1:
            pairs = map(" ".join, pairwise(parts))
            ranks = [self._ranks.get(pair, none) for pair in pairs]
            best = min(ranks)
            if best == none:
                break
            parts = _joined(parts, ranks, best)
        return parts


def _joined(parts: list[str], ranks: list[int], best: int) -> list[str]:
    """The parts with every pair of the best rank made one."""
    joined, at = [], 0
    while at < len(parts):
        is_pair = at < len(ranks) and ranks[at] == best
        joined.append(parts[at] + parts[at + 1] if is_pair else parts[at])
        at += 2 if is_pair else 1
    return joined


def load_pieces(path: Path) -> Pieces:
    """The vocabulary of a `tokenizer.json`. KeyError, TypeError or ValueError if it is none."""
    model: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["model"]
    merges = [pair if isinstance(pair, str) else " ".join(pair) for pair in model["merges"]]
    return Pieces(model["vocab"], merges)


MODEL = "l2_supercat-256"
WEIGHTS_FILE = "weights/l2_supercat_256.safetensors"
VOCABULARY_FILE = "tokenizers/l2_supercat_tokenizer_config.json"
TENSOR = "embedding.weight"
WAY = 1  # of making a vector from the table; another way has another number, and another name

TEXT_BYTES_MAX = 8000
BATCH_TEXTS = 256
# Words that stand everywhere and marks say little of what a text is about.
COMMON_WEIGHT = 0.5
MARK_WEIGHT = 0.3
COMMON_WORDS = frozenset(
    """
    a an and are as at be been but by can d did do does for from had has have he her him his how i
    if in is it its ll m me my of on or our re s she so t that the their them they this to ve was
    we were what when where which who why will with would you your
    """.split()  # noqa: SIM905
)
_NUMBERS = {"F16": "<f2", "F32": "<f4"}

Table = npt.NDArray[Any]  # of float16 or float32


class TableEmbedder:
    """An Embedder that is a table. Nothing in it changes: threads may share it."""

    def __init__(self, name: str, table: Table, pieces: Pieces) -> None:
        self._name = name
        self._table = table
        self._pieces = pieces
        self._weights = _weights(pieces, len(table))

    @property
    def name(self) -> str:
        return self._name

    @property
    def dimensions(self) -> int:
        return int(self._table.shape[1])

    @property
    def batch_texts(self) -> int:
        return BATCH_TEXTS

    def __repr__(self) -> str:
        return f"<TableEmbedder {self.name}>"

    def close(self) -> None:
        """Nothing is held that the last reference does not let go."""

    def embed(
        self,
        texts: Sequence[str],
        *,
        is_cancelled: Callable[[], bool] = never,  # noqa: ARG002  it never waits
    ) -> Embedded:
        return Embedded(vectors=tuple(self._vector(cut(text, TEXT_BYTES_MAX)) for text in texts))

    def _vector(self, text: str) -> bytes:
        pieces = self._pieces.of(text) if text.strip() else ()
        numbers = np.fromiter(pieces, dtype=np.intp)
        rows = self._table[numbers].astype(np.float32)
        total = self._weights[numbers] @ rows
        length = np.sqrt(total @ total)
        return (total / length if length else total).astype("<f4").tobytes()


def _weights(pieces: Pieces, size: int) -> npt.NDArray[np.float32]:
    weights = np.ones(size, dtype=np.float32)
    for piece, number in pieces.vocabulary.items():
        bare = piece.replace(BLANK, "").lower()
        if bare in COMMON_WORDS:
            weights[number] = COMMON_WEIGHT
        elif not bare.isalnum() and not any(map(str.isalnum, bare)):
            weights[number] = MARK_WEIGHT
    return weights


def open_wordllama() -> TableEmbedder:
    """The embedder of the installed package, or MissingExtra."""
    found = importlib.util.find_spec("wordllama")  # which does not run it
    if found is None or not found.submodule_search_locations:
        raise MissingExtra("local embeddings need an extra: pip install 'recollect[embed]'")
    return load_table(Path(found.submodule_search_locations[0]))


def load_table(folder: Path) -> TableEmbedder:
    """The embedder whose files lie below a folder as they do in the package."""
    try:
        table = _table(folder / WEIGHTS_FILE)
        pieces = load_pieces(folder / VOCABULARY_FILE)
        if max(pieces.vocabulary.values()) >= len(table):
            raise ValueError("the vocabulary has more pieces than the table")
    except (OSError, LookupError, TypeError, ValueError, AttributeError) as error:
        raise MissingExtra(
            "the files of wordllama are not those that are known; "
            f"pip install --upgrade 'recollect[embed]' ({error})"
        ) from error
    return TableEmbedder(f"wordllama:{MODEL}/{WAY}", table, pieces)


def _table(path: Path) -> Table:
    """The one tensor of a safetensors file: a length, a header that describes it, its numbers.

    It is mapped, not read: processes share it, and pieces nobody uses take no memory.
    """
    with path.open("rb") as file:
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    start = 8 + int.from_bytes(content[:8], "little")
    tensor = json.loads(content[8:start])[TENSOR]
    rows, columns = tensor["shape"]
    begin, _ = tensor["data_offsets"]
    numbers = np.frombuffer(
        content, dtype=_NUMBERS[tensor["dtype"]], count=rows * columns, offset=start + begin
    )
    return numbers.reshape(rows, columns)
