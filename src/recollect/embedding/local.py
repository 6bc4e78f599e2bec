"""Embeddings on this machine: the mean of what a table says of each piece of a text.

The table and the vocabulary are files of the package `wordllama`. They are read as they lie there:
its own loader asks the network and brings much that is not needed.
"""

from __future__ import annotations

import importlib.util
import json
import mmap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from recollect.embedding.encoding import cut
from recollect.embedding.pieces import BLANK, Pieces, load_pieces
from recollect.embedding.protocol import Embedded, never
from recollect.errors import MissingExtra

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
