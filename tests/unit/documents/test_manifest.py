"""The manifest: read back as it was written, and believed no more than anything from outside."""

from __future__ import annotations

import json
from typing import Any

import pytest

from recollect.documents import manifest as manifests
from recollect.documents.manifest import Manifest, ManifestEntry, file_of, path_of
from recollect.documents.paths import memory_root, read_path
from recollect.errors import InvalidPath, InvalidValue, SchemaTooNew
from tests.tables import every_row

ENTRIES = (
    ManifestEntry(
        path="people/Ána.md", id="2", version=7, sha256="ab", size_bytes=5, at="t", has_sources=True
    ),
    ManifestEntry(path="~.md", id="3", version=1, sha256="cd", is_loaded=True, said=""),
)
MANIFEST = Manifest(
    store="s1",
    space="default",
    root=memory_root(),
    generation=3,
    published_at="2026-01-01T00:00:00+00:00",
    entries=ENTRIES,
)


def test_what_is_written_can_be_read() -> None:
    written = manifests.write(MANIFEST)
    assert manifests.read(written) == MANIFEST
    assert manifests.write(manifests.read(written)) == written
    said = json.loads(written)
    assert said["format"] == 1
    assert [each["path"] for each in said["files"]] == ["people/Ána.md", "~.md"]


def test_files_are_found_by_place_and_by_id() -> None:
    assert MANIFEST.by_key[read_path("PEOPLE/ÁNA").key].id == "2"
    assert MANIFEST.by_key[memory_root().key].id == "3"
    assert MANIFEST.by_id["2"].version == 7


def said(**changes: Any) -> bytes:
    return json.dumps(json.loads(manifests.write(MANIFEST)) | changes).encode()


FILE = {"path": "x.md", "id": "1", "version": 1, "at": "", "sha256": "a", "bytes": 1}


@every_row(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b"\xff",
        b"[" * 200_000,
        said(format="1"),
        said(space=3),
        said(store=None),
        said(root="/etc/../passwd"),
        said(generation=-1),
        said(generation=True),
        said(files=None),
        said(files=[{}]),
        said(files=["x"]),
        said(files=[FILE | {"path": "../x.md"}]),
        said(files=[{key: FILE[key] for key in FILE if key != "sha256"}]),
        said(files=[FILE | {"said": 3}]),
        said(files=[FILE, FILE | {"path": "y.md"}]),
        said(files=[FILE, FILE | {"path": "X.md", "id": "9"}]),
    ],
)
def test_what_is_no_manifest_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidValue):
        manifests.read(data)


def test_a_newer_format_is_not_guessed_at() -> None:
    with pytest.raises(SchemaTooNew):
        manifests.read(said(format=2))


def test_places_and_files_belong_together() -> None:
    root = memory_root()
    for text, file in [("~/memory/a/B c", "a/B c.md"), ("~/memory", "~.md")]:
        path = read_path(text)
        assert file_of(root, path) == file
        assert path_of(root, file) == path


@every_row("name", ["x.md.md", "x.md/y.md", "../x.md", "a//b.md", "a/~.md", ".md", ""])
def test_what_no_document_can_be_called_is_refused(name: str) -> None:
    with pytest.raises(InvalidPath):
        path_of(memory_root(), name)
