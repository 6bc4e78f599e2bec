"""N7: what is learned in a project bears its name, wherever in its work tree the agent stood."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.collection import check_label
from recollect.importers.projects import known_directory, project_of
from tests.unit.strategies import any_text


def test_a_project_is_the_root_of_its_work_tree(tmp_path: Path) -> None:
    (tmp_path / "shop" / ".git").mkdir(parents=True)
    (tmp_path / "shop" / "src" / "web").mkdir(parents=True)

    assert project_of(str(tmp_path / "shop" / "src" / "web")) == str(tmp_path / "shop")
    assert project_of(str(tmp_path / "shop")) == str(tmp_path / "shop")
    assert project_of(f"{tmp_path}/shop/src/../src/web/") == str(tmp_path / "shop")


def test_a_work_tree_beside_its_repository_is_a_project(tmp_path: Path) -> None:
    (tmp_path / "shop" / ".git").mkdir(parents=True)
    (tmp_path / "shop" / "trees" / "fix").mkdir(parents=True)
    (tmp_path / "shop" / "trees" / "fix" / ".git").write_text("gitdir: elsewhere\n")

    assert project_of(str(tmp_path / "shop" / "trees" / "fix")) == str(
        tmp_path / "shop" / "trees" / "fix"
    )


def test_a_directory_that_is_not_there_is_still_below_its_project(tmp_path: Path) -> None:
    (tmp_path / "shop" / ".git").mkdir(parents=True)

    assert project_of(str(tmp_path / "shop" / "gone" / "long ago")) == str(tmp_path / "shop")


@pytest.mark.parametrize(
    "directory",
    [
        *("/nowhere/of/this/machine", "/", "C:\\Users\\ann\\shop", "D:\\", "\\\\host\\share\\shop"),
        "/srv/büro/プロジェクト",
    ],
)
def test_a_directory_of_another_machine_is_its_own_project(directory: str) -> None:
    assert project_of(directory) == directory


@pytest.mark.parametrize(
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
