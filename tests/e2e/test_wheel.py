"""The wheel: whole, and enough in an environment that has its dependencies and no more."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"


def run(arguments: Sequence[str | Path], directory: Path, *, code: int = 0) -> str:
    """What a command prints that ends so, and that finds nothing of this environment or project."""
    kept = {name: os.environ[name] for name in ("LANG", "LC_ALL", "TMPDIR") if name in os.environ}
    done = subprocess.run(
        [str(each) for each in arguments],
        cwd=directory,
        env={
            **kept,
            "HOME": str(directory),
            "PATH": "/usr/bin:/bin",
            "RECOLLECT_STORE": "memory.db",
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert done.returncode == code, f"{arguments}\n{done.stdout}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built as `pip install .` would, without a network and from this environment's flit."""
    directory = tmp_path_factory.mktemp("wheel")
    build = "import sys; from flit_core import buildapi; print(buildapi.build_wheel(sys.argv[1]))"
    name = run([sys.executable, "-P", "-c", build, directory], ROOT)
    return directory / name.strip().splitlines()[-1]


def needed(distribution: importlib.metadata.Distribution, seen: set[str]) -> Iterator[str]:
    """What a package needs without any extra, down to the last."""
    for line in distribution.requires or ():
        requirement = Requirement(line)
        name = canonicalize_name(requirement.name)
        is_meant = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if is_meant and name not in seen:
            seen.add(name)
            yield name
            yield from needed(importlib.metadata.distribution(name), seen)


def lend(name: str, to: Path) -> None:
    """Put an installed package into another environment: links to what it has at the top."""
    distribution = importlib.metadata.distribution(name)
    tops = {file.parts[0] for file in distribution.files or () if file.parts[0] != ".."}
    for top in tops - {"__pycache__"}:
        (to / top).symlink_to(Path(str(distribution.locate_file(top))))


@pytest.fixture
def environment(wheel: Path, tmp_path: Path) -> Path:
    """An empty environment with the wheel in it, and links to its dependencies, without extras.

    A machine without a network has no other place to take them from.
    """
    place = tmp_path / "venv"
    venv.create(place, symlinks=True, with_pip=False)
    python = place / "bin" / "python"
    install: list[str | Path] = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "--quiet",
    ]
    alone = ["--no-index", "--no-deps", "--no-compile", "--disable-pip-version-check"]
    run([*install, *alone, wheel], place)
    (packages,) = (place / "lib").glob("python*/site-packages")
    (described,) = packages.glob("recollect-*.dist-info")
    for name in needed(importlib.metadata.PathDistribution(described), set()):
        lend(name, packages)
    return place


def test_everything_that_is_in_the_source_is_in_the_wheel(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())
    files = [file for file in (SOURCE / "recollect").rglob("*") if file.is_file()]
    ours = {
        file.relative_to(SOURCE).as_posix()
        for file in files
        if file.parent.name != "__pycache__" and not file.name.endswith("~")
    }
    assert {Path(name).suffix for name in ours} >= {".sql", ".toml", ".md", ".typed"}
    assert ours - packed == set()


def test_the_wheel_works_in_an_environment_of_its_own(environment: Path, tmp_path: Path) -> None:
    python, recollect = environment / "bin" / "python", environment / "bin" / "recollect"
    where = run([python, "-c", "import recollect; print(recollect.__file__)"], tmp_path)
    assert Path(where.strip()).is_relative_to(environment)
    assert run([recollect, "--version"], tmp_path).startswith("recollect ")
    demo = run([recollect, "demo"], tmp_path)
    assert "killed" in demo
    run([recollect, "append", "chat", "I live in Lisbon.", "--name", "Ana"], tmp_path)
    run([recollect, "work", "--all"], tmp_path)
    answer = run([recollect, "recall", "where does Ana live?", "--kind", "fact"], tmp_path)
    assert "1. Ana lives in Lisbon." in answer
    advised = run([recollect, "serve"], tmp_path, code=1)  # there is no extra here, really
    assert "recollect[http]" in advised
