"""Writes docs/reference and src/recollect/aio.pyi from the code itself, so that they cannot rot.

python tools/generate_docs.py            write the files
python tools/generate_docs.py --check    exit 1 if they are not what would be written
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # run as a file, the project itself is not on the path

from tools.reference import cli, errors, http, prompts, python, settings, stub, verbs  # noqa: E402

REFERENCE = ROOT / "docs" / "reference"
PAGES = {
    "../../src/recollect/aio.pyi": stub.render,
    "cli.md": cli.render,
    "settings.md": settings.render,
    "prompts.md": prompts.render,
    "python.md": python.render,
    "errors.md": errors.render,
    "http.md": http.render,
    "verbs.md": verbs.render,
}


def main(arguments: list[str]) -> int:
    is_check = arguments == ["--check"]
    if arguments and not is_check:
        print(__doc__, file=sys.stderr)
        return 2
    stale = [name for name, render in PAGES.items() if not _is_current(name, render())]
    for name in stale:
        if is_check:
            print(f"{_file(name)} is out of date: run make docs", file=sys.stderr)
            continue
        REFERENCE.mkdir(parents=True, exist_ok=True)
        (ROOT / _file(name)).write_text(PAGES[name](), encoding="utf-8", newline="\n")
        print(f"wrote {_file(name)}")
    return 1 if is_check and stale else 0


def _file(name: str) -> Path:
    """Where a page is, from the project's directory on."""
    return (REFERENCE / name).resolve().relative_to(ROOT)


def _is_current(name: str, text: str) -> bool:
    file = ROOT / _file(name)
    return file.is_file() and file.read_text(encoding="utf-8") == text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
