"""Export and load: the same bytes whatever the database, whole spaces or none, and bad archives.

Holds N9 for archives: everything a person has can be taken out, read, and put in elsewhere.
"""

from __future__ import annotations

import errno
import gc
import hashlib
import json
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

import recollect
from recollect.clock import ManualClock
from recollect.crashpoints import arm
from recollect.errors import (
    InvalidArchive,
    InvalidValue,
    NotEmpty,
    NotFound,
    RecollectError,
    SchemaTooNew,
)
from recollect.leases import Leaseholder
from recollect.operations.checks import Gravity, examine
from recollect.operations.files import put_into_place
from recollect.progress import Progress, listening
from recollect.types.records import Claim
from tests.unit.operations.material import SETTINGS, SPACES, answers, fill

Change = Callable[[dict[str, bytes]], None]


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("archive") / "all.zip"
    with recollect.open(":memory:", settings=SETTINGS, clock=ManualClock()) as memory:
        fill(memory)
        memory.export(path)
        yield path


def opened(url: str | Path = ":memory:") -> recollect.Memory:
    return recollect.open(url, settings=SETTINGS, clock=ManualClock())


def changed(archive: Path, to: Path, change: Change) -> Path:
    """The archive with other members, and nothing else about it."""
    with zipfile.ZipFile(archive) as file:
        members = {name: file.read(name) for name in file.namelist()}
    change(members)
    with zipfile.ZipFile(to, "w") as file:
        for name, data in members.items():
            file.writestr(name, data)
    return to


def test_what_is_loaded_is_exported_as_the_same_bytes(
    archive: Path, store_url: str, tmp_path: Path
) -> None:
    with opened(store_url) as memory:
        loaded = memory.load(archive)
        assert set(loaded.spaces) == set(SPACES)
        assert all(sum(counts.values()) > 50 for counts in loaded.spaces.values())
        memory.export(tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == archive.read_bytes()


def test_what_was_loaded_works_on(archive: Path, store_url: str) -> None:
    with opened(store_url) as memory:
        memory.load(archive)
        space = memory.space("alice")
        marked = memory.status("alice")
        assert marked.marked_count == 1
        session = space.session(("telegram", "42"), agent="assistant")
        session.append("user", "I sold the dog.")
        assert session.max_seq == 2
        report = memory.work(all=True)
        assert not report.failed
        assert any("Pixel" in hit.text for hit in space.recall("what is the dog called?"))
        assert space.documents.read("/people/ana").path.endswith("/folks/ana")
        restored = space.documents.restore("/old", 1)
        assert restored.body == "Old."


def test_what_was_forgotten_does_not_come_back_with_a_retry_after_a_load(
    store_url: str, tmp_path: Path
) -> None:
    """P11, T1: in another store the keys of conversations have other numbers."""
    with opened() as memory:
        session = memory.space("alice").session("chat")
        session.append("user", "I have a dog called Pixel.", key="k")
        memory.space("alice").forget(session=session)
        memory.export(tmp_path / "alice.zip")
    with opened(store_url) as memory:
        memory.space("bob").session("chat")
        memory.load(tmp_path / "alice.zip")
        session = memory.space("alice").session("chat")
        assert session.append("user", "I have a dog called Pixel.", key="k").is_forgotten
        assert session.all(rotations=True) == []


def test_one_space_can_be_taken_out_and_put_in_beside_others(archive: Path, tmp_path: Path) -> None:
    with opened() as memory:
        memory.space("carol").facts.add("Carol is here")
        assert set(memory.load(archive, space="alice").spaces) == {"alice"}
        assert memory.spaces() == ["alice", "carol"]
        exported = memory.export(tmp_path / "one.zip", space="alice")
        assert set(exported.spaces) == {"alice"}
        with pytest.raises(NotFound):
            memory.export(tmp_path / "none.zip", space="nobody")
    assert not (tmp_path / "none.zip").exists()


def test_an_archive_is_written_over_nothing_least_of_all_the_store_itself(tmp_path: Path) -> None:
    store, letter, link = tmp_path / "memory.db", tmp_path / "letter", tmp_path / "link"
    letter.write_text("Dear Ana")
    link.symlink_to(tmp_path / "nowhere")
    with opened(store) as memory:
        memory.space("alice").facts.add("Alice is here")
        for path in (store, letter, link, tmp_path, Path("/")):
            with pytest.raises(NotEmpty, match="exists already"):
                memory.export(path)
        with pytest.raises(InvalidValue):
            memory.export("a\0b.zip")
        assert memory.space("alice").facts.count() == 1
    assert letter.read_text() == "Dear Ana"
    assert not list(tmp_path.glob("*.part"))
    with opened(store) as memory:
        assert memory.spaces() == ["alice"]


def test_an_export_that_is_interrupted_leaves_nothing_and_says_nothing(tmp_path: Path) -> None:
    def interrupt(progress: Progress) -> None:
        if "bob" in progress.what:
            raise KeyboardInterrupt

    with opened() as memory:
        for name in ("alice", "bob"):
            memory.space(name).facts.add("somebody is here")
        with pytest.raises(KeyboardInterrupt), listening(interrupt):
            memory.export(tmp_path / "all.zip")
        gc.collect()  # an error in here would be a warning, and fail
        assert list(tmp_path.iterdir()) == []


def test_an_archive_can_lie_where_a_file_has_one_name_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    with opened() as memory:
        memory.space("alice").facts.add("Alice is here")
        path = memory.export(tmp_path / "one.zip").path
    (tmp_path / "other").write_text("made meanwhile")
    with pytest.raises(NotEmpty):
        put_into_place(tmp_path / "other", path)
    assert {each.name for each in tmp_path.iterdir()} == {"one.zip", "other"}
    with opened() as memory:
        assert set(memory.load(path).spaces) == {"alice"}


def test_a_load_that_was_interrupted_is_run_again_and_skips_what_is_there(archive: Path) -> None:
    with opened() as memory:
        memory.load(archive, space="alice")
        loaded = memory.load(archive)
        assert loaded.already_there == ("alice",)
        assert set(loaded.spaces) == set(SPACES) - {"alice"}


class StoppedError(Exception):
    """The process ends here."""


def test_a_load_that_did_not_come_to_its_end_says_so_until_it_does(
    archive: Path, store_url: str
) -> None:
    """N9."""

    def stop(name: str) -> None:
        if name == "write.committed":
            raise StoppedError

    with opened(store_url) as memory:
        arm(stop)
        try:
            with pytest.raises(StoppedError):
                memory.load(archive)
        finally:
            arm(None)
        found = examine(memory.store, memory.clock.now()).findings
        assert [each.check for each in found if each.gravity is Gravity.WRONG] == [
            "unfinished-load"
        ]
        assert len(memory.spaces()) == 1
        memory.load(archive)
        assert examine(memory.store, memory.clock.now()).is_sound


def test_a_space_that_is_there_and_other_is_refused_before_anything_is_written(
    archive: Path,
) -> None:
    with opened() as memory:
        memory.space(SPACES[-1]).facts.add("something else")
        with pytest.raises(NotEmpty, match="already"):
            memory.load(archive)
        assert memory.spaces() == [SPACES[-1]]
        assert len(memory.space(SPACES[-1]).facts) == 1


def test_the_archive_can_be_read_without_us(archive: Path) -> None:
    with zipfile.ZipFile(archive) as file:
        manifest = json.loads(file.read("manifest.json"))
        assert [each["space"] for each in manifest["spaces"]] == sorted(SPACES)
        page = file.read("spaces/alice/documents/~/memory/places/lisbon.md").decode()
        lines = file.read("spaces/alice/session_history.jsonl").decode().splitlines()
        names = file.namelist()
    assert "title: Lisbon" in page
    assert "A city." in page
    assert "Lisbon" in json.loads(lines[0])["content"]
    assert len(lines) == manifest["spaces"][0]["counts"]["session_history"]
    assert not [name for name in names if "vector" in name or "api_keys" in name]
    assert {info.date_time for info in zipfile.ZipFile(archive).infolist()} == {
        (1980, 1, 1, 0, 0, 0)
    }


def drop(name: str) -> Change:
    def change(members: dict[str, bytes]) -> None:
        del members[name]

    return change


def edit(name: str, old: bytes, new: bytes) -> Change:
    def change(members: dict[str, bytes]) -> None:
        assert old in members[name]
        members[name] = members[name].replace(old, new)

    return change


def add(name: str, data: bytes) -> Change:
    return lambda members: members.update({name: data})


RECORDS = "spaces/alice/session_history.jsonl"
BAD: Mapping[str, tuple[Change, type[RecollectError]]] = {
    "a word was changed": (edit(RECORDS, b"Lisbon", b"London"), InvalidArchive),
    "a member is missing": (drop(RECORDS), InvalidArchive),
    "a member was added": (add("spaces/alice/more.jsonl", b"{}\n"), InvalidArchive),
    "no manifest": (drop("manifest.json"), InvalidArchive),
    "no JSON": (add("manifest.json", b"{"), InvalidArchive),
    "deep JSON": (add("manifest.json", b"[" * 100_000), InvalidArchive),
    "another format": (
        edit("manifest.json", b"recollect-archive", b"something-else"),
        InvalidArchive,
    ),
    "another version": (
        edit("manifest.json", b'"format_version": 2', b'"format_version": 3'),
        InvalidArchive,
    ),
    "a newer schema": (
        edit("manifest.json", b'"schema_version": ', b'"schema_version": 9'),
        SchemaTooNew,
    ),
    "another number of rows": (
        edit("manifest.json", b'"session_history": ', b'"session_history": 1'),
        InvalidArchive,
    ),
    "a directory that is another space's": (
        edit("manifest.json", b'"directory": "spaces/alice"', b'"directory": "spaces/../x"'),
        InvalidArchive,
    ),
}


@pytest.mark.parametrize("name", sorted(BAD))
def test_a_bad_archive_is_refused_and_nothing_is_loaded(
    name: str, archive: Path, tmp_path: Path
) -> None:
    change, error = BAD[name]
    bad = changed(archive, tmp_path / "bad.zip", change)
    with opened() as memory:
        with pytest.raises(error):
            memory.load(bad)
        assert memory.spaces() == []


def test_an_archive_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    with opened() as memory, pytest.raises(NotFound):
        memory.load(tmp_path / "none.zip")


@pytest.mark.parametrize("keep", [0, 100, 0.5, -1])
def test_an_archive_that_was_cut_short_is_refused(
    keep: float, archive: Path, tmp_path: Path
) -> None:
    data = archive.read_bytes()
    size = int(len(data) * keep) if isinstance(keep, float) else keep
    (tmp_path / "cut.zip").write_bytes(data[:size])
    with opened() as memory:
        with pytest.raises(InvalidArchive):
            memory.load(tmp_path / "cut.zip")
        assert memory.spaces() == []


def vouched(name: str, change: Change) -> Change:
    """The change, and a manifest that knows of it."""

    def whole(members: dict[str, bytes]) -> None:
        change(members)
        manifest = json.loads(members["manifest.json"])
        manifest["members"][name]["sha256"] = hashlib.sha256(members[name]).hexdigest()
        members["manifest.json"] = json.dumps(manifest).encode()

    return whole


def session_id(archive: Path, space: str) -> bytes:
    with zipfile.ZipFile(archive) as file:
        line = file.read(f"spaces/{space}/session_ranges.jsonl").splitlines()[0]
    return str(json.loads(line)["session_id"]).encode()


@pytest.mark.parametrize("table", ["session_ranges", "extractions", "retained_records", "jobs"])
def test_a_space_cannot_reach_into_another_one(
    table: str, archive: Path, tmp_path: Path, store_url: str
) -> None:
    """P9: an archive that somebody made by hand names the session of another tenant."""
    name = f"spaces/alice/{table}.jsonl"
    alice = session_id(archive, "alice")
    with opened(store_url) as memory:
        memory.space("carol").session("k", agent="assistant").append("user", "Hello.")
        carol = memory.space("carol").session("k", agent="assistant").id.encode()
        reaching = vouched(name, edit(name, alice, carol))
        bad = changed(archive, tmp_path / "bad.zip", reaching)
        with pytest.raises(InvalidArchive, match=r"inconsistent|does not hold"):
            memory.load(bad, space="alice")
        assert memory.spaces() == ["carol"]


WRONG_ROWS = {
    "a number that is a list": (b'"seq":1,', b'"seq":[1],'),
    "a number that is too large": (b'"seq":1,', b'"seq":9223372036854775808,'),
    "two records with one number": (b'"seq":2,', b'"seq":1,'),
    "a field that nobody knows": (b'"seq":1,', b'"seq":1,"zeal":1,'),
    "a character that no database holds": (b"Lisbon", rb"Lis\u0000bon"),
    "half a character": (b"Lisbon", rb"Lis\ud800bon"),
    "a session that is not there": (b'"session_id":"0', b'"session_id":"f'),
    "a line that is no row": (b"\n", b"\n[]\n"),
}


@pytest.mark.parametrize("name", sorted(WRONG_ROWS))
def test_rows_that_fit_no_store_are_refused_even_when_the_manifest_vouches_for_them(
    name: str, archive: Path, tmp_path: Path, store_url: str
) -> None:
    old, new = WRONG_ROWS[name]

    bad = changed(archive, tmp_path / "bad.zip", vouched(RECORDS, edit(RECORDS, old, new)))
    with opened(store_url) as memory:
        with pytest.raises(InvalidArchive):
            memory.load(bad, space="alice")
        assert memory.spaces() == []
        assert set(memory.load(archive).spaces) == set(SPACES)


def test_a_claim_stays_behind_and_its_job_is_due_elsewhere(tmp_path: Path) -> None:
    with opened() as memory, opened() as other:
        session = memory.space("alice").session("k", agent="assistant")
        session.append("user", "I moved to Lisbon.")
        session.sleep()
        memory.export(tmp_path / "due.zip")
        holder = Leaseholder(memory.store, memory.settings.lease_policy, memory.clock)
        assert isinstance(holder.claim(), Claim)
        memory.export(tmp_path / "claimed.zip")
        other.load(tmp_path / "claimed.zip")
        assert other.work().processed == 1
    assert (tmp_path / "due.zip").read_bytes() == (tmp_path / "claimed.zip").read_bytes()


def test_recall_answers_the_same_after_a_load(tmp_path: Path) -> None:
    with opened() as memory, opened() as other:
        fill(memory)
        memory.export(tmp_path / "all.zip")
        other.load(tmp_path / "all.zip")
        assert isinstance(other.clock, ManualClock)
        other.clock.advance((memory.clock.now() - other.clock.now()).total_seconds())
        assert answers(other) == answers(memory)
        assert all(answers(memory))
