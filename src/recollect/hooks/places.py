"""Where things are: the project that an agent works in, and what hooks keep beside the store."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path

from recollect.config import Settings
from recollect.hooks.events import Event
from recollect.importers.projects import project_of


def project(event: Event) -> str | None:
    """The project of an event; an agent that does not name its directory calls from there."""
    return project_of(event.directory or str(Path.cwd()))


def data_folder(settings: Settings) -> Path | None:
    """Where hooks may keep files; nowhere when memory is off, or where nobody is at home."""
    return _expanded(settings.data_dir) if settings.data_dir else None


def hook_folder(settings: Settings) -> Path | None:
    """What they keep for each conversation."""
    folder = data_folder(settings)
    return None if folder is None else folder / "hooks"


def fallback_folder(environment: Mapping[str, str]) -> Path | None:
    """Where to complain about settings that cannot be read."""
    named = environment.get("RECOLLECT_DATA_DIR")
    if named:
        return _expanded(named)
    try:
        return data_folder(Settings())
    except RuntimeError:  # without a home there is no place that is known by itself
        return None


def _expanded(folder: str) -> Path | None:
    try:
        return Path(folder).expanduser()
    except RuntimeError:
        return None


def token(*parts: str) -> str:
    """A name for a file there, for any texts."""
    digest = blake2b(digest_size=16)
    for part in parts:
        digest.update(f"{len(part)}:{part}".encode(errors="surrogatepass"))
    return digest.hexdigest()
