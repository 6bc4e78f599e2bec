"""Where settings come from: an argument, the environment, a TOML or YAML file."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recollect.config.settings import Described, Settings, described
from recollect.errors import InvalidSetting

FILE_NAMES = ("recollect.toml", "recollect.yaml", "recollect.yml")
SQLITE_MODULE = "memory.sqlite"
PREFIX = "RECOLLECT_"
# What is read elsewhere: by the MCP server, and by this project's own tests and tools.
OTHER_VARIABLES = frozenset({"RECOLLECT_MCP_TOKEN", "RECOLLECT_BROWSER", "RECOLLECT_REALMODEL"})
OTHER_VARIABLES |= {"RECOLLECT_TORTURE", "RECOLLECT_KILLS", "RECOLLECT_SOAK_SECONDS"}
OTHER_VARIABLES |= {"RECOLLECT_SIMULATION_FIRST", "RECOLLECT_SIMULATION_SEEDS"}
_NOT_GIVEN = ("origins", "agent_data_dirs")  # by that name; made of other settings
NEARNESS_MIN = 0.82  # a letter or two of a setting's name: nobody else's variable is so like it


def user_config_dir() -> Path:
    """Where somebody's own settings lie, wherever they work."""
    import platformdirs  # see above

    return Path(platformdirs.user_config_dir("recollect"))


def load(
    explicit: Settings | Mapping[str, Any] | str | Path | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    directory: Path | None = None,
) -> Settings:
    """Settings from all sources. `explicit` is settings, a mapping of some, or a file to read.

    Complete settings are taken as they are; a file that is named replaces the search for one. A
    mapping may be what such a file holds, the `modules` and `agents` sections included.
    """
    if isinstance(explicit, Settings):
        return explicit
    if not isinstance(explicit, Mapping | str | Path | None):
        raise InvalidSetting(
            "settings are Settings, a mapping of some, or the path of a file, not"
            f" {type(explicit).__name__}"
        )
    named = Path(explicit) if isinstance(explicit, str | Path) else None
    file = _find_file(directory or _working_directory()) if named is None else named
    sources = [
        ({}, "") if file is None else (read_file(file), str(file)),
        _from_environment(os.environ if environ is None else environ),
        (_from_argument(explicit) if isinstance(explicit, Mapping) else {}, "argument"),
    ]
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for found, origin in sources:
        values.update(found)
        origins.update({name: origin or f"RECOLLECT_{name.upper()}" for name in found})
    return Settings(**values, origins=origins)


def _working_directory() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        raise InvalidSetting(
            "the directory you are in is not there any more (it may have been published anew): "
            "enter it again"
        ) from error


def read_file(file: Path) -> dict[str, Any]:
    """The settings in a TOML or YAML file."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSetting(f"cannot read {file}: {error}") from error
    content = _parse_toml(file, text) if file.suffix == ".toml" else _parse_yaml(file, text)
    if not isinstance(content, dict):
        raise InvalidSetting(f"{file}: expected settings by name, found {type(content).__name__}")
    origin = str(file)
    agents = _section(content.pop("agents", None), origin, "agents")
    values = _flat(content, origin)
    if agents:
        sections = {name: _section(each, origin, f"agents.{name}") for name, each in agents.items()}
        values |= _agents(sections, origin)
    return values


def _from_argument(given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by name, or as a file has them: an agent is a switch then, or a section."""
    values = _flat(given, "argument")
    agents = values.get("agents")
    if isinstance(agents, Mapping):
        values |= _agents(agents, "argument")
    return values


def _agents(agents: Mapping[str, Any], origin: str) -> dict[str, Any]:
    """What is said of each agent, by a switch or in a section: if memory is on, and where it is."""
    sections = {name: each for name, each in agents.items() if isinstance(each, Mapping)}
    switches = {name: _is_enabled(each, origin, name) for name, each in sections.items()}
    places = {name: each.get("data_dir") for name, each in sections.items()}
    return {
        "agents": {**agents, **switches},
        "agent_data_dirs": {name: place for name, place in places.items() if place is not None},
    }


def _flat(given: Mapping[str, Any], origin: str) -> dict[str, Any]:
    """Settings by name, those of the `modules` section among them."""
    content = dict(given)
    modules = _section(content.pop("modules", None), origin, "modules")
    values = _known(content, origin)
    if SQLITE_MODULE in modules:
        values |= _sqlite_module(_section(modules[SQLITE_MODULE], origin, SQLITE_MODULE), origin)
    return values


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except PermissionError:  # somebody else's home: there are no settings for us
        return False


def _find_file(directory: Path) -> Path | None:
    for folder in (directory, user_config_dir()):
        for name in FILE_NAMES:
            if _is_file(folder / name):
                return folder / name
    return None


def _parse_toml(file: Path, text: str) -> Any:
    import tomllib  # as with YAML: only for those who have such a file

    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a TOMLDecodeError is a ValueError
        raise InvalidSetting(f"{file} is not TOML: {error}") from error


def _parse_yaml(file: Path, text: str) -> Any:
    import yaml  # slow to import, and few have such a file

    class Loader(yaml.SafeLoader):
        """Reads every name as it is written: `on`, `no` and `null` are names of agents as well."""

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
            self.flatten_mapping(node)
            for name, _ in node.value:
                if isinstance(name, yaml.ScalarNode):
                    name.tag = "tag:yaml.org,2002:str"
            return super().construct_mapping(node, deep)

    try:
        return yaml.load(text, Loader) or {}
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InvalidSetting(f"{file} is not YAML: {error}") from error


def _section(value: Any, origin: str, name: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidSetting(f"{origin}: {name} is a section, not {value!r}")
    return value


def _sqlite_module(section: Mapping[str, Any], origin: str) -> dict[str, Any]:
    names = {
        "path": "sqlite_path",
        "wal": "sqlite_wal",
        "busy_timeout": "sqlite_busy_timeout_ms",
    }
    for name in section:
        if name not in names:
            raise InvalidSetting(
                f"{origin}: modules.{SQLITE_MODULE} has no {name!r}; it has {', '.join(names)}"
            )
    return {names[name]: value for name, value in section.items() if value is not None}


def _is_enabled(section: Mapping[str, Any], origin: str, name: str) -> Any:
    enabled = _section(section.get("memory"), origin, f"agents.{name}.memory").get("enabled")
    return True if enabled is None else enabled


def unknown_variables(environ: Mapping[str, str]) -> list[str]:
    """What begins like a setting and is like none; others use such names, as orchestrators do."""
    return [name for name in _strangers(environ) if _nearest(name) is None]


def _strangers(environ: Mapping[str, str]) -> list[str]:
    known = {each.environment_name for each in described()} | OTHER_VARIABLES
    return sorted(name for name in environ if name.startswith(PREFIX) and name not in known)


def _nearest(variable: str) -> str | None:
    """The setting that was meant, if there is hardly a doubt."""
    import difflib  # only for a typing error

    names = [each.name for each in described()]
    given = variable.removeprefix(PREFIX).lower()
    near = difflib.get_close_matches(given, names, n=1, cutoff=NEARNESS_MIN)
    return near[0] if near else None


def _from_environment(environ: Mapping[str, str]) -> tuple[dict[str, Any], str]:
    found = {}
    for name in _strangers(environ):
        near = _nearest(name)
        if near is not None:
            raise InvalidSetting(
                f"there is no setting {name}; did you mean {PREFIX}{near.upper()}?"
            )
    for setting in described():
        text = environ.get(setting.environment_name)
        if text is not None:
            found[setting.name] = _parse(setting, text)
    return found, ""


def _known(values: Mapping[str, Any], origin: str) -> dict[str, Any]:
    names = [each.name for each in dataclasses.fields(Settings) if each.name not in _NOT_GIVEN]
    for name in values:
        if name not in names:
            import difflib  # only for a typing error

            near = difflib.get_close_matches(str(name), names, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise InvalidSetting(f"{origin}: there is no setting {name!r}{hint}")
    return dict(values)


_WORDS = {"1": True, "true": True, "yes": True, "on": True} | {
    "0": False,
    "false": False,
    "no": False,
    "off": False,
}


def _parse(setting: Described, text: str) -> Any:
    try:
        if setting.type is bool:
            return _WORDS[text.strip().lower()]
        return setting.type(text)
    except (KeyError, ValueError) as error:
        raise InvalidSetting(
            f"{setting.environment_name} is {setting.type.__name__}, not {text!r}"
        ) from error
