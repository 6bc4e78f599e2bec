"""A folder of notes becomes documents; what somebody changed there is theirs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import recollect
from recollect.errors import NotFound
from recollect.importers.items import ImportReport
from recollect.importers.markdown import ImportingNotes


@pytest.fixture
def memory(store_url: str) -> Iterator[recollect.Memory]:
    with recollect.open(store_url, settings={"consolidation": "off"}) as opened:
        yield opened


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    folder = tmp_path / ".vault" / "Garden"
    (folder / "People").mkdir(parents=True)
    (folder / "Tea.md").write_text("---\ntags: [drink]\nstars: 5\n---\n# Tea\n\nSee [[Ana]].\n")
    (folder / "People" / "Ana.md").write_text("Drinks [[Tea|green tea]].\n")
    (folder / ".obsidian").mkdir()
    (folder / ".obsidian" / "hidden.md").write_text("settings")
    return folder


def run(memory: recollect.Memory, folder: Path, *, is_dry: bool = False) -> ImportReport:
    return ImportingNotes(memory, "default", is_dry=is_dry).run(folder)


def test_notes_become_documents_with_links_between_them(
    memory: recollect.Memory, vault: Path
) -> None:
    """N7: and they are recalled as what a person wrote."""
    assert run(memory, vault).documents == 2
    documents = memory.space().documents
    paths = [
        node.path for node in documents.tree("~/memory/notes") if documents.read(node.path).body
    ]
    assert len(paths) == 2
    tea = next(documents.read(path) for path in paths if "ea" in path.rpartition("/")[2])
    assert (tea.title, tea.tags) == ("Tea", ("drink",))
    assert "stars: 5" in tea.body
    assert "[[~/memory/notes/Garden/People/Ana" in tea.body
    [hit, *_] = memory.space().recall("green tea", filters={"project": ["/any", None]})
    assert "green tea" in hit.text


def test_again_writes_only_what_changed(memory: recollect.Memory, vault: Path) -> None:
    run(memory, vault)
    before = memory.space().documents.tree("~/memory/notes")
    again = run(memory, vault)
    assert (again.documents, again.files_unchanged) == (0, 2)
    assert memory.space().documents.tree("~/memory/notes") == before
    (vault / "Tea.md").write_text("# Tea\n\nBlack.\n")
    assert run(memory, vault).documents == 1


def test_what_somebody_changed_here_is_kept_and_reported(
    memory: recollect.Memory, vault: Path
) -> None:
    run(memory, vault)
    documents = memory.space().documents
    [path] = [node.path for node in documents.tree("~/memory/notes") if node.title == "Tea"]
    documents.append(path, "Mine.")
    (vault / "Tea.md").write_text("# Tea\n\nBlack.\n")
    report = run(memory, vault)
    assert report.documents == 0
    assert sum(report.left_out.values()) == 1
    assert "Mine." in documents.read(path).body
    alone = vault / "Alone.md"
    alone.write_text("Nobody refers to it.\n")
    assert run(memory, vault).documents == 1
    documents.delete(
        next(each.path for each in documents.tree("~/memory/notes") if each.title == "Alone")
    )
    alone.write_text("Changed.\n")
    assert run(memory, vault).documents == 0, "what was deleted does not come back"
    documents.write("~/memory/notes/Garden/Other", "Somebody's.")
    (vault / "Other.md").write_text("Another.\n")
    assert run(memory, vault).left_out["another document has its path"] == 1


def test_a_dry_run_writes_nothing(memory: recollect.Memory, vault: Path) -> None:
    assert run(memory, vault, is_dry=True).documents == 2
    assert memory.space().documents.find("~/memory/notes") is None
    assert run(memory, vault).documents == 2


def test_a_folder_that_is_not_there_is_an_error(memory: recollect.Memory, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="nowhere"):
        run(memory, tmp_path / "nowhere")


def test_a_note_whose_name_is_no_text_becomes_a_document_like_any_other(
    memory: recollect.Memory, tmp_path: Path
) -> None:
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    (folder / os.fsdecode(b"caf\xe9.md")).write_text("Strong.\n")
    assert run(memory, folder).documents == 1
    assert run(memory, folder).files_unchanged == 1
