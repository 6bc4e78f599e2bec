"""Archives that people hand over, harmless or not: read as far as it goes, and said."""

from __future__ import annotations

import json
import os
import stat
import struct
import zipfile
from hashlib import sha256
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recollect.importers import streams as reading
from recollect.importers.items import Odd, Trouble
from recollect.importers.streams import entries_of

VALUES = [{"a": 1}, {"a": 2}]
DATA = json.dumps(VALUES).encode()
UNOPENED = ("unreadable", "no access, or not a file")


def is_wanted(name: str) -> bool:
    return PurePosixPath(name).name == "conversations.json"


def entries(path: Path) -> list[object]:
    return list(entries_of(path, is_wanted, names=()))


def details(path: Path) -> list[tuple[str, str]]:
    odd = [each for each in entries(path) if isinstance(each, Odd)]
    return [(each.trouble.value, each.detail) for each in odd]


def archive(path: Path, *members: tuple[str | zipfile.ZipInfo, bytes], method: int = 8) -> Path:
    with zipfile.ZipFile(path, "w", method) as made:
        for name, data in members:
            made.writestr(name, data)
    return path


def test_a_file_by_itself_is_read_whatever_it_is_called(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_bytes(DATA)
    assert entries(path) == VALUES


def test_the_wanted_files_of_an_archive_are_read_in_the_order_of_their_names(
    tmp_path: Path,
) -> None:
    path = archive(
        tmp_path / "export.zip",
        ("b/conversations.json", b"[3]"),
        ("user.json", b"[0]"),
        ("../../a/conversations.json", DATA),
        ("/etc/conversations.json", b"[4]"),
        ("c/conversations.json/", b""),
        ("inner.zip", b"PK"),
    )
    assert entries(path) == [*VALUES, 4, 3]
    assert sorted(each.name for each in tmp_path.iterdir()) == ["export.zip"]


def test_an_archive_is_known_by_what_it_is_and_not_by_its_name(tmp_path: Path) -> None:
    assert entries(archive(tmp_path / "download", ("conversations.json", DATA))) == VALUES


def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "conversations.json")
    assert details(tmp_path / "conversations.json") == [UNOPENED]
    assert details(tmp_path) == [UNOPENED]


def test_what_cannot_be_opened_is_said(tmp_path: Path) -> None:
    assert details(tmp_path / "none.zip") == [UNOPENED]
    assert details(tmp_path / "nul\0") == [UNOPENED]
    nothing = archive(tmp_path / "other.zip", ("user.json", b"{}"))
    assert details(nothing) == [("unreadable", "an archive without the file that is looked for")]


def test_a_link_in_an_archive_is_not_read(tmp_path: Path) -> None:
    link = zipfile.ZipInfo("conversations.json")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    path = archive(tmp_path / "export.zip", (link, b"/etc/passwd"))
    assert details(path) == [("unreadable", "a link in an archive")]


def test_an_encrypted_archive_is_said(tmp_path: Path) -> None:
    path = archive(tmp_path / "export.zip", ("conversations.json", DATA))
    data = bytearray(path.read_bytes())
    for signature, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(signature) + at] |= 1
    path.write_bytes(data)
    assert details(path) == [("unreadable", "an encrypted archive")]


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_an_archive_that_could_unpack_to_anything_at_once_is_not_opened(
    tmp_path: Path, method: int
) -> None:
    path = archive(tmp_path / "export.zip", ("conversations.json", DATA), method=method)
    assert details(path) == [("unreadable", "an archive packed in an unusual way")]


def test_a_bomb_is_defused_by_what_comes_out_and_not_by_what_it_says(tmp_path: Path) -> None:
    bomb = b"[1, " + b" " * 40 * 2**20 + b", 2]"
    path = archive(tmp_path / "export.zip", ("conversations.json", bomb))
    assert ("too large", "an archive that unpacks to more") in details(path)
    data = path.read_bytes().replace(struct.pack("<L", len(bomb)), struct.pack("<L", 100))
    path.write_bytes(data)
    assert 2 not in entries(path)


def test_all_that_is_read_of_one_archive_has_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = [(f"{number}/conversations.json", DATA) for number in range(10)]
    path = archive(tmp_path / "export.zip", *members)
    monkeypatch.setattr(reading, "ARCHIVE_BYTES_MAX", 3 * len(DATA))
    found = entries(path)
    assert [each for each in found if not isinstance(each, Odd)] == VALUES * 3
    monkeypatch.setattr(reading, "MEMBERS_MAX", 9)
    assert ("too large", "an archive with too many files") in details(path)


def test_a_list_of_names_is_not_read_that_says_it_is_endless(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = archive(tmp_path / "export.zip", ("conversations.json", DATA))
    monkeypatch.setattr(reading, "DIRECTORY_BYTES_MAX", 20)
    assert details(path) == [("too large", "an archive with too many files")]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_damage_makes_it_raise_and_the_trouble_is_said(
    tmp_path: Path, data: st.DataObject
) -> None:
    path = archive(tmp_path / "export.zip", ("conversations.json", DATA), ("x.json", b"[0]"))
    whole = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(4, len(whole) - 1))] = data.draw(st.integers(0, 255))
    damaged = bytes(whole[: data.draw(st.integers(4, len(whole)))])
    path.write_bytes(damaged)
    found = entries(path)
    values = [each for each in found if not isinstance(each, Odd)]
    assert values == VALUES or any(isinstance(each, Odd) for each in found)


def test_a_file_that_is_damaged_in_the_middle_gives_what_comes_before(tmp_path: Path) -> None:
    text = json.dumps(
        [{"a": sha256(b"%d" % number).hexdigest()} for number in range(50_000)]
    ).encode()
    path = archive(tmp_path / "export.zip", ("conversations.json", text))
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 64] = bytes(64)
    path.write_bytes(data)
    found = entries(path)
    assert len(found) > 10_000
    assert Odd(trouble=Trouble.UNREADABLE, detail="damaged") in found
