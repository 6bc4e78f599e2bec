"""Embeddings from a table: read from files as the package has them, here with six pieces."""

from __future__ import annotations

import json
import math
import struct
import sys
from pathlib import Path
from typing import Any

import pytest

from recollect.embedding.local import (
    COMMON_WEIGHT,
    MARK_WEIGHT,
    TENSOR,
    VOCABULARY_FILE,
    WEIGHTS_FILE,
    load_table,
    open_wordllama,
)
from recollect.embedding.protocol import Embedder, floats, zero_bytes
from recollect.errors import MissingExtra

PIECES = ["▁bees", "▁wasps", "▁the", ".", "▁", "x"]
ROWS = [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (0.0, -1.0, 0.0), (0, 0, 0), (0, 0, 0)]


def write_files(
    folder: Path, *, rows: list[Any] = ROWS, kind: str = "F16", tensor: str = TENSOR
) -> Path:
    numbers = [number for row in rows for number in row]
    packed = struct.pack(f"<{len(numbers)}{'e' if kind == 'F16' else 'f'}", *numbers)
    about = {"dtype": kind, "shape": [len(rows), 3], "data_offsets": [0, len(packed)]}
    header = json.dumps({"__metadata__": {"made": "by a test"}, tensor: about}).encode()
    vocabulary = {"model": {"vocab": {piece: at for at, piece in enumerate(PIECES)}, "merges": []}}
    for name, content in (
        (WEIGHTS_FILE, len(header).to_bytes(8, "little") + header + packed),
        (VOCABULARY_FILE, json.dumps(vocabulary).encode()),
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def vector(embedder: Embedder, text: str) -> tuple[float, ...]:
    return floats(embedder.embed([text]).vectors[0])


@pytest.mark.parametrize("kind", ["F16", "F32"])
def test_a_text_is_the_mean_of_its_pieces_one_long(tmp_path: Path, kind: str) -> None:
    embedder = load_table(write_files(tmp_path, kind=kind))
    assert vector(embedder, "bees") == (1, 0, 0)
    half = math.sqrt(0.5)
    assert vector(embedder, "bees wasps") == pytest.approx((half, half, 0))
    assert vector(embedder, "bees wasps bees wasps") == pytest.approx((half, half, 0))


def test_common_words_and_marks_count_less(tmp_path: Path) -> None:
    embedder = load_table(write_files(tmp_path))
    found = vector(embedder, "the bees.")
    assert found[2] / found[0] == pytest.approx(COMMON_WEIGHT)
    assert -found[1] / found[0] == pytest.approx(MARK_WEIGHT)


@pytest.mark.parametrize("text", ["", " ", "\n\t ", "xxx"])
def test_a_text_that_says_nothing_has_a_vector_of_zeros(tmp_path: Path, text: str) -> None:
    blank = [*ROWS[:4], (1.0, 1.0, 1.0), ROWS[5]] if not text.strip() else ROWS
    embedder = load_table(write_files(tmp_path, rows=blank))
    assert embedder.embed([text]).vectors == (zero_bytes(3),)


def test_any_text_is_taken_and_the_end_of_a_very_long_one_does_not_count(tmp_path: Path) -> None:
    embedder = load_table(write_files(tmp_path))
    texts = ["\ud800 bees", "bees \0", "bees 😀 蜂", "bees " * 200_000 + "wasps", "x" * 1_000_000]
    assert [floats(each) for each in embedder.embed(texts).vectors] == [
        *((1, 0, 0),) * 4,
        (0, 0, 0),
    ]


def test_a_text_has_one_vector_whatever_stands_beside_it(tmp_path: Path) -> None:
    embedder = load_table(write_files(tmp_path))
    texts = ["bees", "the wasps.", "bees wasps the"]
    assert embedder.embed(texts).vectors == tuple(embedder.embed([t]).vectors[0] for t in texts)


def test_it_says_what_it_is_and_costs_nothing(tmp_path: Path) -> None:
    embedder = load_table(write_files(tmp_path))
    assert isinstance(embedder, Embedder)
    assert (embedder.name, embedder.dimensions) == ("wordllama:l2_supercat-256/1", 3)
    assert embedder.embed(["bees"]).usage is None


@pytest.mark.parametrize(
    "broken",
    [{"tensor": "other"}, {"kind": "F16", "rows": ROWS[:5]}, {"rows": []}],
)
def test_files_that_are_not_the_known_ones_are_refused(
    tmp_path: Path, broken: dict[str, Any]
) -> None:
    with pytest.raises(MissingExtra, match="not those that are known"):
        load_table(write_files(tmp_path, **broken))


def test_files_that_are_cut_off_or_gone_are_refused(tmp_path: Path) -> None:
    weights = write_files(tmp_path) / WEIGHTS_FILE
    for content in (weights.read_bytes()[:-4], b"", b"\xff" * 32):
        weights.write_bytes(content)
        with pytest.raises(MissingExtra):
            load_table(tmp_path)
    weights.unlink()
    with pytest.raises(MissingExtra):
        load_table(tmp_path)


def test_the_package_is_found_without_being_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "wordllama"
    write_files(package)
    (package / "__init__.py").write_text("raise RuntimeError('it was run')")
    monkeypatch.syspath_prepend(tmp_path)
    assert open_wordllama().dimensions == 3
    assert "wordllama" not in sys.modules


def test_without_the_package_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(MissingExtra, match=r"pip install 'recollect\[embed\]'"):
        open_wordllama()
