"""N7: what is learned in a project bears its name, wherever in its work tree the agent stood."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.collection import check_label
from recollect.importers.projects import known_directory, project_of
from tests.tables import every_row
from tests.unit.strategies import any_text


def test_a_project_is_the_root_of_its_work_tree(tmp_path: Path) -> None:
    (tmp_path / "shop" / ".git").mkdir(parents=True)
    (tmp_path / "shop" / "src" / "web").mkdir(parents=True)

    assert project_of(str(tmp_path / "shop" / "src" / "web")) == str(tmp_path / "shop")
    assert project_of(str(tmp_path / "shop")) == str(tmp_path / "shop")
    assert project_of(f"{tmp_path}/shop/src/../src/web/") == str(tmp_path / "shop")


def git(directory: Path, *arguments: str) -> None:
    settings = ("user.name=Ann", "user.email=ann@example.org", "protocol.file.allow=always")
    options = [part for each in settings for part in ("-c", each)]
    subprocess.run(
        ["git", *options, "-C", str(directory), *arguments], check=True, capture_output=True
    )


def repository(directory: Path) -> Path:
    directory.mkdir(parents=True)
    git(directory, "init", "--quiet")
    git(directory, "commit", "--quiet", "--allow-empty", "--message", "Begin")
    return directory


def test_linked_work_trees_of_one_repository_are_one_project(tmp_path: Path) -> None:
    """L-16: what was learned in one of them holds in the others."""
    shop = repository(tmp_path / "shop")
    git(shop, "worktree", "add", "--quiet", str(tmp_path / "trees" / "fix"))
    (tmp_path / "trees" / "fix" / "src").mkdir()

    assert project_of(str(tmp_path / "trees" / "fix" / "src")) == str(shop)
    assert project_of(str(shop)) == str(shop)


def test_work_trees_of_a_hidden_bare_repository_are_the_directory_around_it(tmp_path: Path) -> None:
    repository(tmp_path / "first")
    (tmp_path / "shop").mkdir()
    git(tmp_path, "clone", "--quiet", "--bare", str(tmp_path / "first"), "shop/.bare")
    git(tmp_path / "shop" / ".bare", "worktree", "add", "--quiet", str(tmp_path / "shop" / "fix"))

    assert project_of(str(tmp_path / "shop" / "fix")) == str(tmp_path / "shop")


def test_a_submodule_is_a_project_of_its_own(tmp_path: Path) -> None:
    repository(tmp_path / "part")
    shop = repository(tmp_path / "shop")
    git(shop, "submodule", "--quiet", "add", str(tmp_path / "part"), "part")

    assert project_of(str(shop / "part")) == str(shop / "part")


@pytest.mark.parametrize(
    "said", ["gitdir: elsewhere", "gitdir: {shop}/.git/worktrees/fix", "", "x"]
)
def test_a_directory_that_only_says_it_belongs_to_a_repository_does_not(
    tmp_path: Path, said: str
) -> None:
    """A log could name it, to have what is learned there hold for somebody else's project."""
    shop = repository(tmp_path / "shop")
    git(shop, "worktree", "add", "--quiet", str(tmp_path / "fix"))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / ".git").write_text(said.format(shop=shop) + "\n")

    assert project_of(str(tmp_path / "other")) == str(tmp_path / "other")


def test_a_work_tree_whose_git_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".git")

    assert project_of(str(tmp_path)) == str(tmp_path)


def test_a_directory_that_is_not_there_is_still_below_its_project(tmp_path: Path) -> None:
    (tmp_path / "shop" / ".git").mkdir(parents=True)

    assert project_of(str(tmp_path / "shop" / "gone" / "long ago")) == str(tmp_path / "shop")


@every_row(
    "directory",
    [
        *("/nowhere/of/this/machine", "/", "C:\\Users\\ann\\shop", "D:\\", "\\\\host\\share\\shop"),
        "/srv/büro/プロジェクト",
    ],
)
def test_a_directory_of_another_machine_is_its_own_project(directory: str) -> None:
    assert project_of(directory) == directory


@every_row(
    "directory",
    [
        *(
            "",
            "shop",
            "./shop",
            "../shop",
            "~/shop",
            "C:shop",
            "\\shop",
            "/srv/\x1b[2J",
            "/srv/a\nb",
        ),
        *("/srv/\0", "/srv/\ud800", "/srv/\u202eflip", "/" + "x" * 400),
    ],
)
def test_what_is_no_directory_is_no_project(directory: str) -> None:
    assert project_of(directory) is None


@given(any_text | st.builds("/{}".format, any_text) | st.builds("C:\\{}".format, any_text))
def test_whatever_a_log_says_the_name_can_be_stored(directory: str) -> None:
    project = project_of(directory)

    if project is not None:
        assert check_label(project, "a project") == project
        assert known_directory(project) == project
        assert ".." not in project.replace("\\", "/").split("/")
