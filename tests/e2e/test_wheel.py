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
    """Built as `pip install .` would."""
    return built(ROOT, tmp_path_factory.mktemp("wheel"))


def built(project: Path, directory: Path) -> Path:
    """A wheel, made without a network and by this environment's flit."""
    build = "import sys; from flit_core import buildapi; print(buildapi.build_wheel(sys.argv[1]))"
    name = run([sys.executable, "-P", "-c", build, directory], project)
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


def packed(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def written(package: Path) -> set[str]:
    """The files of a package as they are in the source."""
    return {
        file.relative_to(package.parent).as_posix()
        for file in package.rglob("*")
        if file.is_file() and file.parent.name != "__pycache__" and not file.name.endswith("~")
    }


def test_what_is_in_the_source_is_in_the_wheel_and_nothing_else(wheel: Path) -> None:
    ours = written(SOURCE / "recollect")
    assert {Path(name).suffix for name in ours} >= {".sql", ".toml", ".md", ".typed"}
    assert packed(wheel) == ours
    assert [name for name in ours if "conformance" in name or "scripted" in name] == []


def test_the_conformance_suite_is_a_distribution_of_its_own(wheel: Path, tmp_path: Path) -> None:
    """And of the same version: its cases are written against the protocol of that one."""
    suite = built(ROOT / "conformance", tmp_path)
    assert packed(suite) == written(ROOT / "conformance" / "recollect_conformance")
    version = wheel.name.split("-")[1]
    assert suite.name.split("-")[1] == version
    metadata = importlib.metadata.metadata("recollect-conformance")
    needed = metadata.get_all("Requires-Dist") or []
    assert f"recollect=={version}" in needed


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
