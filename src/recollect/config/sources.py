"""Where settings come from: an argument, the environment, a TOML or YAML file."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from recollect.config.settings import Described, Settings, described
from recollect.errors import InvalidSetting

FILE_NAMES = ("recollect.toml", "recollect.yaml", "recollect.yml")
SQLITE_MODULE = "memory.sqlite"
_SQLITE_NAMES = {
    "path": "sqlite_path",
    "wal": "sqlite_wal",
    "busy_timeout": "sqlite_busy_timeout_ms",
}
PREFIX = "RECOLLECT_"
# What is read elsewhere: by the MCP server, and by this project's own tests and tools.
OTHER_VARIABLES = frozenset({"RECOLLECT_MCP_TOKEN", "RECOLLECT_BROWSER", "RECOLLECT_REALMODEL"})
OTHER_VARIABLES |= {
    "RECOLLECT_API_KEY",
    "RECOLLECT_TORTURE",
    "RECOLLECT_KILLS",
    "RECOLLECT_SOAK_SECONDS",
}
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
        (_flat(explicit, "argument") if isinstance(explicit, Mapping) else {}, "argument"),
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
            "the current directory no longer exists (it may have been replaced by a publish): "
            "enter it again"
        ) from error


def parsed_file(file: Path) -> Any:
    """What a TOML, YAML or JSON file holds."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSetting(f"cannot read {file}: {error}") from error
    return _parse_toml(file, text) if file.suffix == ".toml" else _parse_yaml(file, text)


def read_file(file: Path) -> dict[str, Any]:
    """The settings in a TOML or YAML file."""
    content = parsed_file(file)
    if not isinstance(content, dict):
        raise InvalidSetting(f"{file}: expected settings by name, found {type(content).__name__}")
    origin = str(file)
    agents = _section(content.pop("agents", None), origin, "agents")
    if agents:
        content["agents"] = {
            name: _section(each, origin, f"agents.{name}") for name, each in agents.items()
        }
    return _flat(content, origin)


def _flat(given: Mapping[str, Any], origin: str) -> dict[str, Any]:
    """Settings by name, those of the `modules` and `agents` sections among them."""
    values = dict(given)
    modules = _section(values.pop("modules", None), origin, "modules")
    _check_names(values, origin)
    for name, value in _section(modules.get(SQLITE_MODULE), origin, SQLITE_MODULE).items():
        if name not in _SQLITE_NAMES:
            raise InvalidSetting(
                f"{origin}: modules.{SQLITE_MODULE} has no {name!r}; it has "
                f"{', '.join(_SQLITE_NAMES)}"
            )
        if value is not None:
            values[_SQLITE_NAMES[name]] = value
    agents = values.get("agents")
    return values | (_agents(agents, origin) if isinstance(agents, Mapping) else {})


def _agents(agents: Mapping[str, Any], origin: str) -> dict[str, Any]:
    """What is said of each agent, by a switch or in a section: if memory is on, and where it is."""
    switches, places = dict(agents), {}
    for name, each in agents.items():
        if isinstance(each, Mapping):
            memory = _section(each.get("memory"), origin, f"agents.{name}.memory")
            enabled = memory.get("enabled")
            switches[name] = True if enabled is None else enabled
            if each.get("data_dir") is not None:
                places[name] = each["data_dir"]
    return {"agents": switches, "agent_data_dirs": places}


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


def unknown_variables(environ: Mapping[str, str]) -> list[str]:
    """What begins like a setting and is like none; others use such names, as orchestrators do."""
    return [name for name in _strangers(environ) if _nearest(name) is None]


def _strangers(environ: Mapping[str, str]) -> list[str]:
    known = {each.environment_name for each in described()} | OTHER_VARIABLES
    return sorted(name for name in environ if name.startswith(PREFIX) and name not in known)


def _nearest(variable: str) -> str | None:
    """The setting that was meant, if there is hardly a doubt."""
    names = [each.name for each in described()]
    return _near(variable.removeprefix(PREFIX).lower(), names, NEARNESS_MIN)


def _near(given: str, names: Sequence[str], cutoff: float) -> str | None:
    import difflib  # only for a typing error

    return next(iter(difflib.get_close_matches(given, names, n=1, cutoff=cutoff)), None)


def _from_environment(environ: Mapping[str, str]) -> tuple[dict[str, Any], str]:
    for name in _strangers(environ):
        if near := _nearest(name):
            raise InvalidSetting(
                f"there is no setting {name}; did you mean {PREFIX}{near.upper()}?"
            )
    texts = ((each, environ.get(each.environment_name)) for each in described())
    return {each.name: _parse(each, text) for each, text in texts if text is not None}, ""


def _check_names(values: Mapping[str, Any], origin: str) -> None:
    names = [each.name for each in dataclasses.fields(Settings) if each.name not in _NOT_GIVEN]
    for name in values:
        if name not in names:
            near = _near(str(name), names, 0.6)
            hint = f"; did you mean {near!r}?" if near else ""
            raise InvalidSetting(f"{origin}: there is no setting {name!r}{hint}")


_WORDS = dict.fromkeys(("1", "true", "yes", "on"), True)
_WORDS |= dict.fromkeys(("0", "false", "no", "off"), False)


def _parse(setting: Described, text: str) -> Any:
    try:
        if setting.type is bool:
            return _WORDS[text.strip().lower()]
        return setting.type(text)
    except (KeyError, ValueError) as error:
        raise InvalidSetting(
            f"{setting.environment_name} is {setting.type.__name__}, not {text!r}"
        ) from error
