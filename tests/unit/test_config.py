"""Settings: where they come from, which source wins, and that every value is checked."""

from __future__ import annotations

import math
import re
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

from recollect.config import (
    Described,
    Settings,
    described,
    load,
    read_file,
    unknown_variables,
)
from recollect.config.sources import FILE_NAMES, OTHER_VARIABLES
from recollect.errors import InvalidSetting
from recollect.types.generations import SelectionClock
from recollect.types.records import MarkPolicy, MarkUnit
from tests.tables import every_row

ROOT = Path(__file__).resolve().parents[2]
EVERY = list(described())
BOUNDED = [setting for setting in EVERY if setting.minimum is not None]
CHOSEN = [setting for setting in EVERY if setting.choices is not None]

DOCUMENT_004 = """\
modules:
  memory.sqlite:
    path: "/data/memory.db"   # Database file path (default: {data_dir}/memory.db)
    wal: true                  # Enable WAL journal mode (default: true)
    busy_timeout: 5000         # Milliseconds to wait on busy lock (default: 5000)

agents:
  assistant:
    memory:
      enabled: true   # default: true when omitted
"""


def by_name(setting: Described) -> str:
    return setting.name


def from_file(folder: Path, text: str, name: str = "recollect.yaml") -> Settings:
    (folder / name).write_text(text, encoding="utf-8")
    return load(environ={}, directory=folder)


# defaults and precedence


def test_without_any_source_every_setting_has_its_default(tmp_path: Path) -> None:
    settings = load(environ={}, directory=tmp_path)
    assert settings == Settings()
    assert settings.origins == {}
    for setting in described():
        assert getattr(settings, setting.name) == setting.default
    assert settings.mark_policy == MarkPolicy(threshold=5, unit=MarkUnit.RECORDS)


def test_an_argument_wins_over_the_environment_over_a_file_over_the_default(
    tmp_path: Path,
) -> None:
    file = tmp_path / "recollect.toml"
    file.write_text("mark_threshold = 1\nretain_recent = 1\nmax_history_len = 1\n")
    settings = load(
        {"mark_threshold": 3},
        environ={"RECOLLECT_MARK_THRESHOLD": "2", "RECOLLECT_RETAIN_RECENT": "2"},
        directory=tmp_path,
    )
    assert settings.mark_threshold == 3
    assert settings.retain_recent == 2
    assert settings.max_history_len == 1
    assert settings.batch_records_max == Settings().batch_records_max
    assert settings.origins == {
        "mark_threshold": "argument",
        "retain_recent": "RECOLLECT_RETAIN_RECENT",
        "max_history_len": str(file),
    }


def test_complete_settings_are_taken_as_they_are(tmp_path: Path) -> None:
    given = Settings(mark_threshold=7)
    assert load(given, environ={"RECOLLECT_MARK_THRESHOLD": "2"}, directory=tmp_path) is given


@pytest.mark.parametrize("given", [[1], 5, b"x", True])
def test_what_holds_no_settings_is_not_taken_for_none(given: Any) -> None:
    with pytest.raises(InvalidSetting, match="settings are Settings"):
        load(given)


def test_the_environment_of_the_process_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_MARK_UNIT", "turns")
    assert load().mark_policy == MarkPolicy(threshold=5, unit=MarkUnit.TURNS)


# files


@pytest.mark.parametrize("name", FILE_NAMES)
def test_a_file_in_the_working_directory_is_found(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "mark_threshold = 9" if name.endswith("toml") else "mark_threshold: 9"
    (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    assert load(environ={}).mark_threshold == 9


def test_the_working_directory_comes_before_the_users_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    monkeypatch.setattr("platformdirs.user_config_dir", lambda _name: str(home))
    (home / "recollect.yaml").write_text("mark_threshold: 1")
    assert load(environ={}, directory=work).mark_threshold == 1
    (work / "recollect.toml").write_text("mark_threshold = 2")
    assert load(environ={}, directory=work).mark_threshold == 2


def test_a_file_that_is_named_replaces_the_search(tmp_path: Path) -> None:
    (tmp_path / "recollect.toml").write_text("mark_threshold = 1\nretain_recent = 1\n")
    named = tmp_path / "other.yml"
    named.write_text("mark_threshold: 2")
    for explicit in (named, str(named)):
        settings = load(explicit, environ={}, directory=tmp_path)
        assert settings.mark_threshold == 2
        assert settings.retain_recent == Settings().retain_recent


def test_an_empty_file_changes_nothing(tmp_path: Path) -> None:
    assert from_file(tmp_path, "", "recollect.toml") == Settings()
    assert from_file(tmp_path, "# nothing\n", "recollect.yaml") == Settings()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("recollect.toml", "mark_threshold = = 1"),
        ("recollect.toml", f"store = {'[' * 1000}"),
        ("recollect.toml", f"mark_threshold = {'1' * 5000}"),
        ("recollect.yaml", "mark_threshold: [1"),
        ("recollect.yaml", "!!python/object:os.system {}"),
        ("recollect.yaml", "- a\n- b"),
        ("recollect.yaml", "just words"),
        ("recollect.yaml", "store: 2026-13-45"),
        ("recollect.yaml", f"store: {'[' * 1000}"),
        ("recollect.yaml", "modules: 5"),
        ("recollect.yaml", "modules: {memory.sqlite: yes please}"),
        ("recollect.yaml", "agents: [assistant]"),
        ("recollect.yaml", "agents: {assistant: off}"),
        ("recollect.yaml", "agents: {assistant: {memory: off}}"),
        ("recollect.yaml", "agents: {assistant: {memory: {enabled: maybe}}}"),
        ("recollect.yaml", "agents: {assistant: {data_dir: [a]}}"),
        ("recollect.yaml", "agent_data_dirs: {assistant: /tmp}"),
    ],
)
def test_a_broken_file_is_refused(tmp_path: Path, name: str, text: str) -> None:
    with pytest.raises(InvalidSetting):
        from_file(tmp_path, text, name)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "missing.toml"
    with pytest.raises(InvalidSetting, match=r"missing\.toml"):
        load(missing, environ={})
    with pytest.raises(InvalidSetting):
        read_file(tmp_path)  # a directory
    latin = tmp_path / "latin.toml"
    latin.write_bytes("store = 'ö'".encode("latin-1"))
    with pytest.raises(InvalidSetting, match=r"latin\.toml"):
        load(latin, environ={})


# document 004


def test_the_configuration_of_document_004_loads_unchanged(tmp_path: Path) -> None:
    settings = from_file(tmp_path, DOCUMENT_004)
    assert settings.path() == Path("/data/memory.db")
    assert settings.sqlite_wal is True
    assert settings.sqlite_busy_timeout_ms == 5000
    assert settings.database == "global"
    assert settings.is_memory_enabled("assistant")


def test_every_field_of_document_004_can_be_changed(tmp_path: Path) -> None:
    text = DOCUMENT_004.replace("wal: true", "wal: false").replace("5000  ", "250  ")
    settings = from_file(tmp_path, text.replace("enabled: true", "enabled: false"))
    assert settings.sqlite_wal is False
    assert settings.sqlite_busy_timeout_ms == 250
    assert not settings.is_memory_enabled("assistant")
    assert settings.is_memory_enabled("somebody else")


@pytest.mark.parametrize(
    "agent", ["{}", "", "{memory: {}}", "{memory: }", "{memory: {enabled: }}", "{model: large}"]
)
def test_memory_is_on_when_it_is_omitted(tmp_path: Path, agent: str) -> None:
    settings = from_file(tmp_path, f"agents:\n  assistant: {agent}\n")
    assert settings.agents == {"assistant": True}
    assert settings.is_memory_enabled("assistant")


@pytest.mark.parametrize("section", ["", "{}", "{path: , wal: , busy_timeout: }"])
def test_fields_of_the_sqlite_module_may_be_omitted(tmp_path: Path, section: str) -> None:
    settings = from_file(tmp_path, f"modules:\n  memory.sqlite: {section}\n")
    assert settings.sqlite_path is None
    assert settings.sqlite_wal is True
    assert settings.sqlite_busy_timeout_ms == 5000


def test_what_belongs_to_others_is_ignored(tmp_path: Path) -> None:
    text = """
modules:
  channel.telegram: {token: secret, wal: 7}
  memory.sqlite: {busy_timeout: 1}
agents:
  assistant:
    model: large
    tools: [search]
    memory: {enabled: false, backend: other}
"""
    settings = from_file(tmp_path, text)
    assert settings.sqlite_busy_timeout_ms == 1
    assert settings.agents == {"assistant": False}


def test_the_same_sections_work_in_toml(tmp_path: Path) -> None:
    text = """
mark_threshold = 2
[modules."memory.sqlite"]
wal = false
[agents.assistant.memory]
enabled = false
"""
    settings = from_file(tmp_path, text, "recollect.toml")
    assert (settings.mark_threshold, settings.sqlite_wal) == (2, False)
    assert settings.agents == {"assistant": False}


def test_an_unknown_field_of_the_sqlite_module_is_answered_with_the_known_ones(
    tmp_path: Path,
) -> None:
    with pytest.raises(InvalidSetting, match="'pfad'; it has path, wal, busy_timeout"):
        from_file(tmp_path, "modules: {memory.sqlite: {pfad: x}}")


# names


@pytest.mark.parametrize("name", ["mark_treshold", "markthreshold", "Mark_threshold"])
def test_an_unknown_setting_is_answered_with_the_nearest(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidSetting, match="did you mean 'mark_threshold'"):
        load({name: 1}, environ={})
    with pytest.raises(InvalidSetting, match=r"recollect\.yaml.*did you mean 'mark_threshold'"):
        from_file(tmp_path, f"{name}: 1")


def test_a_setting_like_no_other_is_refused_too(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match=r"no setting 'zzz'$"):
        load({"zzz": 1}, environ={})
    with pytest.raises(InvalidSetting, match="no setting '5'"):
        from_file(tmp_path, "5: x")


@pytest.mark.parametrize("name", ["MARK_TRESHOLD", "MARKTHRESHOLD", "mark_threshold"])
def test_a_variable_that_is_nearly_a_setting_is_refused(name: str) -> None:
    with pytest.raises(InvalidSetting, match=r"RECOLLECT_.*did you mean RECOLLECT_MARK_THRESHOLD"):
        load(environ={f"RECOLLECT_{name}": "1"})


def test_variables_of_others_are_known_to_be_no_settings() -> None:
    """Kubernetes, for one, sets some for a service of this name."""
    environ = {"RECOLLECT_PORT": "tcp://x", "RECOLLECT_NOPE": "1", "RECOLLECT_STORE": ":memory:"}
    assert load(environ=environ).store == ":memory:"
    assert unknown_variables(environ) == ["RECOLLECT_NOPE", "RECOLLECT_PORT"]


def test_every_variable_that_the_documents_name_is_known() -> None:
    files = [ROOT / "Makefile", *(ROOT / "docs").rglob("*.md"), *(ROOT / "deploy").iterdir()]
    text = "\n".join(each.read_text(encoding="utf-8") for each in files)
    named = set(re.findall(r"\bRECOLLECT_[A-Z_]*[A-Z]\b", text))
    assert len(named) > 5
    assert named <= OTHER_VARIABLES | {setting.environment_name for setting in EVERY}


def test_where_settings_come_from_is_not_itself_a_setting(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="origins"):
        load({"origins": {}}, environ={})


# bounds and types


def just_below(setting: Described) -> float:
    assert setting.minimum is not None
    if setting.type is int:
        return int(setting.minimum) - 1
    return math.nextafter(setting.minimum, -math.inf)


def just_above(setting: Described) -> float:
    assert setting.maximum is not None
    if setting.type is int:
        return int(setting.maximum) + 1
    return math.nextafter(setting.maximum, math.inf)


@every_row("setting", BOUNDED)
def test_every_number_has_bounds(setting: Described) -> None:
    for inside in (setting.minimum, setting.maximum):
        assert inside is not None
        assert (
            getattr(load({setting.name: setting.type(inside)}, environ={}), setting.name) == inside
        )
    for outside in (just_below(setting), just_above(setting)):
        with pytest.raises(InvalidSetting, match=f"{setting.name} must be between"):
            load({setting.name: outside}, environ={})
        with pytest.raises(InvalidSetting, match=setting.name):
            load(environ={setting.environment_name: repr(outside)})


def test_no_number_is_without_bounds() -> None:
    numbers = [setting.name for setting in described() if setting.type in (int, float)]
    assert numbers == [setting.name for setting in BOUNDED]
    assert all(setting.maximum is not None for setting in BOUNDED)


@every_row("setting", EVERY)
def test_a_setting_has_a_description_and_a_default_that_passes(setting: Described) -> None:
    assert setting.doc.endswith(".")
    assert getattr(Settings(), setting.name) == setting.default


@every_row("setting", EVERY)
def test_a_value_of_another_type_is_refused(setting: Described) -> None:
    wrong: list[Any] = [[], {}, b"x", object(), 1j]
    wrong += [] if setting.default is None else [None]
    wrong += [] if setting.type is str else ["x", "5"]
    wrong += [] if setting.type is bool else [True]
    wrong += [] if setting.type in (int, float) else [1]
    wrong += [] if setting.type is float else [1.5]
    for value in wrong:
        with pytest.raises(InvalidSetting, match=setting.name):
            load({setting.name: value}, environ={})


@every_row("setting", CHOSEN)
def test_a_choice_is_one_of_its_words(setting: Described) -> None:
    assert setting.choices is not None
    for word in setting.choices:
        assert getattr(load({setting.name: word}, environ={}), setting.name) == word
    with pytest.raises(InvalidSetting, match=", ".join(setting.choices)):
        load({setting.name: "neither"}, environ={})


@pytest.mark.parametrize(
    ("name", "words"), [("mark_unit", MarkUnit), ("consolidation_clock", SelectionClock)]
)
def test_a_choice_between_words_is_between_all_there_are(name: str, words: type[StrEnum]) -> None:
    """Settings name them without loading them: many a process needs settings alone."""
    (setting,) = (each for each in CHOSEN if each.name == name)
    assert setting.choices == tuple(words)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 10**400])
def test_what_is_no_finite_number_is_out_of_bounds(value: float) -> None:
    for name in ("idle_sweep_seconds", "postgres_timeout_seconds"):
        with pytest.raises(InvalidSetting, match=name):
            load({name: value}, environ={})


@every_row("text", ["nan", "inf", "-inf", "ten", "", "1e999"])
def test_what_is_no_finite_number_is_refused_in_the_environment(text: str) -> None:
    with pytest.raises(InvalidSetting):
        load(environ={"RECOLLECT_IDLE_SWEEP_SECONDS": text})


def test_a_whole_number_is_fine_for_seconds() -> None:
    settings = load({"idle_sweep_seconds": 30}, environ={})
    assert settings.idle_sweep_seconds == 30.0
    assert type(settings.idle_sweep_seconds) is float


def test_a_path_is_fine_for_text(tmp_path: Path) -> None:
    assert load({"data_dir": tmp_path}, environ={}).data_dir == str(tmp_path)


@every_row(
    ("text", "value"),
    [
        *((text, True) for text in ("1", "true", "TRUE", "yes", "on", " On ")),
        *((text, False) for text in ("0", "false", "False", "no", "off")),
    ],
)
def test_a_switch_in_the_environment_is_a_word(text: str, value: bool) -> None:
    assert load(environ={"RECOLLECT_SQLITE_WAL": text}).sqlite_wal is value


@pytest.mark.parametrize("text", ["", "2", "maybe", "tru"])
def test_another_word_is_no_switch(text: str) -> None:
    with pytest.raises(InvalidSetting, match="RECOLLECT_SQLITE_WAL is bool"):
        load(environ={"RECOLLECT_SQLITE_WAL": text})


def test_a_number_in_the_environment_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidSetting, match="RECOLLECT_MARK_THRESHOLD is int, not 'five'"):
        load(environ={"RECOLLECT_MARK_THRESHOLD": "five"})


@every_row("setting", EVERY)
def test_every_setting_can_be_set_in_the_environment(setting: Described) -> None:
    value = setting.choices[-1] if setting.choices else setting.default
    text = "text" if value is None else str(value)
    settings = load(environ={setting.environment_name: text})
    assert str(getattr(settings, setting.name)) == text
    assert settings.origins == {setting.name: setting.environment_name}


def test_an_empty_store_or_path_is_none(tmp_path: Path) -> None:
    settings = load(
        environ={"RECOLLECT_STORE": "", "RECOLLECT_SQLITE_PATH": "", "RECOLLECT_DATA_DIR": ""}
    )
    assert (settings.store, settings.sqlite_path, settings.data_dir) == (None, None, "")


def test_agents_may_be_given_as_an_argument() -> None:
    settings = load({"agents": {"a": False}}, environ={})
    assert not settings.is_memory_enabled("a")
    assert settings.is_memory_enabled("b")


def test_what_a_file_holds_may_be_given_as_an_argument(tmp_path: Path) -> None:
    """T10: the document's settings, as a file and as the mapping that the file is."""
    content = {
        "data_dir": str(tmp_path),
        "modules": {"memory.sqlite": {"path": "{data_dir}/memory.db", "wal": False}},
        "agents": {"a": {"memory": {"enabled": False}}, "b": True, "c": {}},
    }
    settings = load(content, environ={})
    assert settings.agents == {"a": False, "b": True, "c": True}
    assert (settings.path(), settings.sqlite_wal) == (tmp_path / "memory.db", False)
    assert settings.origins["sqlite_wal"] == "argument"
    assert set(content) == {"data_dir", "modules", "agents"}
    for wrong in ({"modules": 5}, {"modules": {"memory.sqlite": {"pfad": "x"}}}):
        with pytest.raises(InvalidSetting, match="argument: modules"):
            load(wrong, environ={})


@every_row("agents", [["a"], "a", None, 5, {"a": "off"}, {"a": None}, {"a": 0}])
def test_agents_are_switches_by_name(agents: Any) -> None:
    with pytest.raises(InvalidSetting, match="agents"):
        load({"agents": agents}, environ={})


# paths


def test_the_path_may_refer_to_the_data_directory(tmp_path: Path) -> None:
    given = {"data_dir": str(tmp_path), "sqlite_path": "{data_dir}/deep/own.db"}
    assert load(given, environ={}).path() == tmp_path / "deep" / "own.db"


def test_without_a_path_the_database_lies_in_the_data_directory(tmp_path: Path) -> None:
    settings = load({"data_dir": str(tmp_path)}, environ={})
    assert settings.path() == tmp_path / "memory.db"
    assert settings.path("assistant") == tmp_path / "agents" / "assistant" / "memory.db"


def test_a_tilde_is_the_home_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    settings = load({"data_dir": "~/data"}, environ={})
    assert settings.path() == tmp_path / "data" / "memory.db"
    assert settings.path("a") == tmp_path / "data" / "agents" / "a" / "memory.db"


@pytest.mark.parametrize(
    "name", ["..", ".", "a/b", "/etc", ".hidden", "../../x", "~", "a\\b", "%2E", "CON.", "ö😀"]
)
def test_an_agents_name_never_becomes_a_path(tmp_path: Path, name: str) -> None:
    settings = load({"data_dir": str(tmp_path)}, environ={})
    path = settings.path(name)
    assert path.parent.parent == tmp_path / "agents"
    assert path.resolve() == path
    assert not path.parent.name.startswith(".")
    assert path.name == "memory.db"


def test_different_agents_have_different_paths(tmp_path: Path) -> None:
    settings = load({"data_dir": str(tmp_path)}, environ={})
    names = ["a/b", "a%2Fb", "a%252Fb", "a b", "a+b", ".a", "%2Ea", "a"]
    assert len({settings.path(name) for name in names}) == len(names)


def test_a_long_agent_name_still_fits_into_a_file_name() -> None:
    settings = Settings(data_dir="/data")
    names = ["🦊" * 100, "🦊" * 99 + "🐻"]
    folders = {settings.path(name).parent.name for name in names}
    assert len(folders) == 2
    assert all(len(folder) <= 200 for folder in folders)
