"""The manifest: read back as it was written, and believed no more than anything from outside."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from recollect.documents import manifest as manifests
from recollect.documents.manifest import Manifest, ManifestEntry, file_of, folder_of, path_of
from recollect.documents.paths import memory_root, read_path
from recollect.errors import InvalidPath, InvalidValue, SchemaTooNew
from recollect.types.pages import Content

ENTRIES = (
    ManifestEntry(
        path="people/Ána.md", id="2", version=7, sha256="ab", size_bytes=5, at="t", has_sources=True
    ),
    ManifestEntry(path="~.md", id="3", version=1, sha256="cd"),
    ManifestEntry(path="people", id="1", version=1, sha256=""),
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
    assert MANIFEST.folders[read_path("people").key].id == "1"
    assert MANIFEST.by_id["2"].version == 7


def said(**changes: Any) -> bytes:
    return json.dumps(json.loads(manifests.write(MANIFEST)) | changes).encode()


FILE = {"path": "x.md", "id": "1", "version": 1, "at": "", "sha256": "a", "bytes": 1}
FOLDER = {"path": "x", "id": "7", "version": 1, "at": ""}


@pytest.mark.parametrize(
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
        said(files=[FILE | {"said": {"title": 3}}]),
        said(folders=[FOLDER | {"id": "2"}]),
        said(folders=[FOLDER | {"path": "a", "id": "8"}, FOLDER | {"path": "A", "id": "9"}]),
    ],
)
def test_what_is_no_manifest_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidValue):
        manifests.read(data)


def test_a_newer_format_is_not_guessed_at() -> None:
    with pytest.raises(SchemaTooNew):
        manifests.read(said(format=2))


# what was loaded since

LOADED = replace(
    MANIFEST,
    entries=(
        replace(ENTRIES[0], path="people/Ana.md", version=8, said=Content(title="t", tags=("a",))),
        ENTRIES[2],
        ManifestEntry(path="new.md", id="4", version=1, sha256="ef"),
    ),
)


def test_what_was_loaded_since_is_kept_beside_what_was_published() -> None:
    written = manifests.write_loaded(MANIFEST, LOADED)
    assert set(manifests.read_loaded(MANIFEST, written).entries) == set(LOADED.entries)
    noted = json.loads(written)
    assert [each["id"] for each in noted["files"] + noted["folders"]] == ["2", "4"]
    assert noted["gone"] == ["3"]


def test_what_was_loaded_from_another_generation_says_nothing() -> None:
    written = manifests.write_loaded(replace(MANIFEST, generation=2), LOADED)
    assert manifests.read_loaded(MANIFEST, written) == MANIFEST


@pytest.mark.parametrize(
    "changes",
    [
        {"gone": 3},
        {"gone": [3]},
        {"files": [{}]},
        {"files": [FILE | {"path": "../x.md"}]},
        {"files": [FILE | {"path": "PEOPLE.md", "id": "8"}]},
        {"published_at": None},
    ],
)
def test_what_is_no_list_of_what_was_loaded_is_refused(changes: dict[str, Any]) -> None:
    data = json.loads(manifests.write_loaded(MANIFEST, MANIFEST)) | changes
    with pytest.raises(InvalidValue):
        manifests.read_loaded(MANIFEST, json.dumps(data).encode())


def test_places_and_files_belong_together() -> None:
    root = memory_root()
    for text, file, folder in [
        ("~/memory/a/B c", "a/B c.md", "a/B c"),
        ("~/memory", "~.md", "~"),
    ]:
        path = read_path(text)
        assert file_of(root, path) == file
        assert folder_of(root, path) == folder
        assert path_of(root, file) == path_of(root, folder) == path


@pytest.mark.parametrize(
    "name", ["x.md.md", "x.md/y.md", "../x.md", "a//b.md", "a/~.md", ".md", ""]
)
def test_what_no_document_can_be_called_is_refused(name: str) -> None:
    with pytest.raises(InvalidPath):
        path_of(memory_root(), name)
