"""Where things are: the store, the project that an agent works in, and what hooks keep beside.

An agent calls from whatever it works on. What is named from there would be another place each time,
in the middle of somebody's project: only what an option says itself may be.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from pathlib import Path
from urllib.parse import quote

from recollect.config import Settings
from recollect.errors import InvalidSetting
from recollect.hooks.events import Event
from recollect.importers.projects import project_of


def project(event: Event) -> str | None:
    """The project of an event; an agent that does not name its directory calls from there."""
    return project_of(event.directory or str(Path.cwd()))


def _file_of(address: str) -> tuple[str, bool]:
    """The path of a store that is a file, or nothing; and whether it is named by a URL."""
    scheme, separator, path = address.partition(":///")
    if separator and scheme == "sqlite":
        return "" if path == ":memory:" else path, True
    return "" if "://" in address or address == ":memory:" else address, False


def is_relative(address: str) -> bool:
    """Whether it depends on the working directory which store is meant."""
    path, is_url = _file_of(address)
    if is_url:
        return path != "" and not path.startswith(("/", "%2F", "%2f", "~"))
    return path != "" and not Path(path).expanduser().is_absolute()


def absolute(address: str) -> str:
    """The same store, named so that it is found from anywhere."""
    path, is_url = _file_of(address)
    if is_url:
        return f"sqlite:///{quote(str(Path.cwd()))}/{path}" if is_relative(address) else address
    return str(Path(path).expanduser().absolute()) if path else address


def expect_one_place(settings: Settings) -> None:
    """InvalidSetting: there would be a store, or files of hooks, wherever an agent works."""
    names = {"data_dir": settings.data_dir}
    if settings.store is not None:
        names["store"] = settings.store
    elif settings.sqlite_path is not None:
        names["sqlite_path"] = str(settings.path())
    for name, value in names.items():
        origin = settings.origins.get(name, "")
        if value and origin != "argument" and is_relative(value):
            raise InvalidSetting(
                f"{name} ({origin}) is a relative path, and an agent calls from wherever it works: "
                "nothing is told or kept; name the whole path"
            )


def log_folder(settings: Settings | None, environment: Mapping[str, str]) -> Path | None:
    """Where to say what went wrong, also with settings that cannot be read."""
    try:
        if settings is not None and not is_relative(settings.data_dir):
            return data_folder(settings)
        named = environment.get("RECOLLECT_DATA_DIR")
        if named and not is_relative(named):
            return Path(named).expanduser()
        return data_folder(Settings())
    except RuntimeError:  # without a home there is no place that is known by itself
        return None


def data_folder(settings: Settings) -> Path | None:
    """Where hooks may keep files; nowhere when memory is off, or where nobody is at home."""
    try:
        return Path(settings.data_dir).expanduser() if settings.data_dir else None
    except RuntimeError:
        return None


def hook_folder(settings: Settings) -> Path | None:
    """What they keep for each conversation."""
    folder = data_folder(settings)
    return None if folder is None else folder / "hooks"


def token(*parts: str) -> str:
    """A name for a file there, for any texts."""
    digest = blake2b(digest_size=16)
    for part in parts:
        digest.update(f"{len(part)}:{part}".encode(errors="surrogatepass"))
    return digest.hexdigest()


IDS_MAX = 500
FILE_BYTES_MAX = 200_000


class ShownIds:
    """The ids of what stood in the blocks of one conversation."""

    def __init__(self, folder: Path | None, name: str) -> None:
        self._path = None if folder is None else folder / f"{name}.json"

    def ids(self) -> list[str]:
        """In the order in which they were told; none where that cannot be read."""
        if self._path is None:
            return []
        try:
            with self._path.open("rb") as file:
                told = json.loads(file.read(FILE_BYTES_MAX))
        except (OSError, ValueError, RecursionError):
            return []
        return [each for each in told if isinstance(each, str)] if isinstance(told, list) else []

    def keep(self, ids: Iterable[str]) -> None:
        """Remember these, and no others."""
        if self._path is None:
            return
        kept = list(dict.fromkeys(ids))[-IDS_MAX:]
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            aside = self._path.with_suffix(f".{os.getpid()}")
            aside.write_text(json.dumps(kept), encoding="utf-8")
            aside.replace(self._path)

    def forget(self) -> None:
        if self._path is not None:
            with contextlib.suppress(OSError):
                self._path.unlink(missing_ok=True)
