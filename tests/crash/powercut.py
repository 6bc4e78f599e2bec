"""Builds what a disk may hold after the power went, from the log of a `LoggingVFS`.

The model: what a completed sync covers is there. Of later writes and truncations any subset is, and
any of those writes may be torn at sector boundaries, its sectors new, old, zero or garbage; bytes
outside a write are never touched (SQLite's powersafe overwrite). A name shows any of the files it
stood for since the directory was last synced, or none if it was created or deleted since then.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import assert_never

from tests.crash.vfs import Acknowledged, Created, Deleted, Event, Found, Log, Sync, Truncate, Write

SECTOR_BYTES = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """One possible disk; `image_at(log, cut, seed)` builds it again."""

    cut: int
    seed: str
    files: dict[str, bytes] = field(repr=False)

    def write_to(self, directory: Path) -> None:
        """Make `directory` (created, or emptied of files) hold exactly this image."""
        directory.mkdir(exist_ok=True)
        for old in directory.iterdir():
            old.unlink()
        for name, data in self.files.items():
            (directory / name).write_bytes(data)


def images(log: Log, *, count: int, seed: int, first_cut: int = 0) -> Iterator[Image]:
    """`count` images at random cuts, in the order of the log, so that it is replayed only once."""
    chosen = Random(seed)
    cuts = sorted(chosen.randint(first_cut, len(log.events)) for _ in range(count))
    disk, done = _Disk(), 0
    for number, cut in enumerate(cuts):
        for event in log.events[done:cut]:
            disk.apply(event)
        done = cut
        yield disk.image(cut, f"{seed}/{number}")


def image_at(log: Log, cut: int, seed: str) -> Image:
    """The image that `images` called by this cut and seed."""
    disk = _Disk()
    for event in log.events[:cut]:
        disk.apply(event)
    return disk.image(cut, seed)


@dataclass(slots=True)
class _File:
    durable: bytearray = field(default_factory=bytearray)
    pending: list[Write | Truncate] = field(default_factory=list)

    def sync(self) -> None:
        for change in self.pending:
            _change(self.durable, change)
        self.pending.clear()


class _Disk:
    def __init__(self) -> None:
        self._files: dict[int, _File] = {}
        # What each name stood for since the last sync of the directory, the durable one first.
        self._entries: dict[str, list[int | None]] = {}

    def apply(self, event: Event) -> None:
        match event:
            case Found(file=file, name=name, data=data):
                self._files[file] = _File(durable=bytearray(data))
                self._entries[name] = [file]
            case Created(file=file, name=name):
                self._files[file] = _File()
                self._entries.setdefault(name, [None]).append(file)
            case Deleted(name=name, directory_synced=directory_synced):
                self._entries.setdefault(name, [None]).append(None)
                if directory_synced:
                    self._sync_directory()
            case Write() | Truncate():
                self._files[event.file].pending.append(event)
            case Sync(file=file, directory_synced=directory_synced):
                self._files[file].sync()
                if directory_synced:
                    self._sync_directory()
            case Acknowledged():
                pass
            case _:
                assert_never(event)

    def image(self, cut: int, seed: str) -> Image:
        random = Random(f"{seed}@{cut}")
        # A share per image: losing everything and losing a little find different bugs.
        kept, torn = random.choice((0.0, 0.5, 0.9, 1.0)), random.choice((0.0, 0.1, 0.5))
        files: dict[str, bytes] = {}
        for name, stood_for in self._entries.items():
            file = random.choice(stood_for)
            if file is not None:
                files[name] = _after_power_loss(self._files[file], random, kept, torn)
        return Image(cut=cut, seed=seed, files=files)

    def _sync_directory(self) -> None:
        self._entries = {name: stood_for[-1:] for name, stood_for in self._entries.items()}


def _after_power_loss(file: _File, random: Random, kept: float, torn: float) -> bytes:
    content = bytearray(file.durable)
    for change in file.pending:
        if isinstance(change, Write) and random.random() < torn:
            for piece in _tear(change, random):
                _change(content, piece)
        elif random.random() < kept:
            _change(content, change)
    return bytes(content)


def _tear(write: Write, random: Random) -> list[Write]:
    sectors = _sectors(write)
    if random.random() < 0.5:
        return sectors[: random.randrange(len(sectors) + 1)]
    pieces: list[Write] = []
    for sector in sectors:
        size = len(sector.data)
        match random.choice(("new", "old", "zero", "garbage")):
            case "new":
                pieces.append(sector)
            case "zero":
                pieces.append(Write(file=write.file, offset=sector.offset, data=bytes(size)))
            case "garbage":
                data = random.randbytes(size)
                pieces.append(Write(file=write.file, offset=sector.offset, data=data))
            case _:
                pass  # what stood there before the write
    return pieces


def _sectors(write: Write) -> list[Write]:
    end = write.offset + len(write.data)
    sectors: list[Write] = []
    start = write.offset
    while start < end:
        stop = min(end, start - start % SECTOR_BYTES + SECTOR_BYTES)
        data = write.data[start - write.offset : stop - write.offset]
        sectors.append(Write(file=write.file, offset=start, data=data))
        start = stop
    return sectors


def _change(content: bytearray, change: Write | Truncate) -> None:
    size = change.size if isinstance(change, Truncate) else change.offset
    if len(content) < size:
        content.extend(bytes(size - len(content)))
    if isinstance(change, Truncate):
        del content[size:]
    else:
        content[size : size + len(change.data)] = change.data
