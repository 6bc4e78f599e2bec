"""Settings: where they come from, their defaults and their bounds.

Explicit argument > environment (`RECOLLECT_…`) > `recollect.toml` or `recollect.yaml` in the
working directory, else in the user's configuration directory > default. Every value is checked
against its bounds wherever it comes from; an unknown name is an error, not a silent nothing.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, get_type_hints
from urllib.parse import quote

from recollect.domain import LeasePolicy, MarkPolicy, MarkUnit
from recollect.errors import InvalidSetting

FILE_NAMES = ("recollect.toml", "recollect.yaml", "recollect.yml")
SQLITE_MODULE = "memory.sqlite"
FOLDER_BYTES_MAX = 200  # file systems stop at 255


def _setting(
    default: Any,
    doc: str,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    choices: tuple[str, ...] | None = None,
) -> Any:
    metadata = {"doc": doc, "minimum": minimum, "maximum": maximum, "choices": choices}
    if callable(default):
        return field(default_factory=default, metadata=metadata)
    return field(default=default, metadata=metadata)


def _user_data_dir() -> str:
    import platformdirs  # asked for when settings are made, not when Recollect is imported

    return platformdirs.user_data_dir("recollect")


def _user_config_dir() -> Path:
    import platformdirs  # see above

    return Path(platformdirs.user_config_dir("recollect"))


@cache
def _mark_policy(threshold: int, unit: str) -> MarkPolicy:
    return MarkPolicy(threshold=threshold, unit=MarkUnit(unit))


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Every setting of Recollect, checked. `load` fills it from its sources."""

    store: str | None = _setting(
        None,
        "Store to open when none is given: a path, `sqlite:///…`, `postgresql://…`, `:memory:`.",
    )
    data_dir: str = _setting(
        _user_data_dir,
        "Where databases without a path of their own lie. Empty: memory is off, no file is made.",
    )
    database: str = _setting(
        "global",
        "One database for all agents, or one each in `{data_dir}/agents/<name>/memory.db`.",
        choices=("global", "per-agent"),
    )
    sqlite_path: str | None = _setting(None, "The database file; default `{data_dir}/memory.db`.")
    sqlite_wal: bool = _setting(True, "Write-ahead log: readers do not wait for writers.")
    sqlite_busy_timeout_ms: int = _setting(
        5000,
        "How long to wait for another process's lock before StoreBusy.",
        minimum=0,
        maximum=600_000,
    )
    postgres_schema: str = _setting(
        "recollect", "The PostgreSQL schema that holds the tables; `?schema=` in the URL wins."
    )
    postgres_pool_max: int = _setting(
        8, "Connections to PostgreSQL per process.", minimum=1, maximum=200
    )
    postgres_timeout_seconds: float = _setting(
        10.0, "How long to wait for a connection to PostgreSQL.", minimum=0.1, maximum=600
    )
    mark_threshold: int = _setting(
        5,
        "More unprocessed records (or completed turns) than this mark a session.",
        minimum=0,
        maximum=100_000,
    )
    mark_unit: str = _setting(
        "records", "What the threshold counts.", choices=tuple(unit.value for unit in MarkUnit)
    )
    idle_sweep_seconds: float = _setting(
        600.0,
        "Sessions with unprocessed records and no activity for this long are marked by the sweep.",
        minimum=1,
        maximum=31_536_000,
    )
    idle_sweep_every_seconds: float = _setting(
        60.0, "How often a worker sweeps.", minimum=0.1, maximum=86_400
    )
    worker_tick_seconds: float = _setting(
        30.0, "How often a worker looks for due jobs by itself.", minimum=0.01, maximum=3600
    )
    worker_batch: int = _setting(
        10, "The most jobs one tick of a worker claims.", minimum=1, maximum=1000
    )
    worker_concurrency: int = _setting(
        8, "Jobs a worker processes at the same time.", minimum=1, maximum=256
    )
    worker_running_max: int = _setting(
        64, "Jobs that run at the same time in the whole store.", minimum=1, maximum=100_000
    )
    worker_wake: bool = _setting(
        True, "Look at once when new work is announced, by this process or by PostgreSQL."
    )
    worker_grace_seconds: float = _setting(
        10.0, "How long a worker that is told to stop lets jobs finish.", minimum=0, maximum=3600
    )
    lease_seconds: float = _setting(
        60.0,
        "How long a claim lives without being renewed; it is renewed three times as often.",
        minimum=0.1,
        maximum=3600,
    )
    job_failures_max: int = _setting(
        5, "Failures after which a job is parked.", minimum=1, maximum=1000
    )
    job_takeovers_max: int = _setting(
        20,
        "Takeovers without progress after which a job is parked.",
        minimum=1,
        maximum=1000,
    )
    backoff_seconds: float = _setting(
        60.0,
        "The bound of the first backoff; it doubles with each failure, with full jitter.",
        minimum=0,
        maximum=86_400,
    )
    backoff_seconds_max: float = _setting(
        3600.0, "The highest bound of a backoff.", minimum=0, maximum=604_800
    )
    scan_sessions_max: int = _setting(
        16, "The most sessions a start-up scan marks.", minimum=1, maximum=10_000
    )
    scan_rows_max: int = _setting(
        5000, "The most sessions a start-up scan looks at.", minimum=1, maximum=1_000_000
    )
    scan_age_days_max: float = _setting(
        30.0, "Older sessions are not scanned.", minimum=0, maximum=36_500
    )
    scan_idle_seconds: float = _setting(
        21_600.0, "Sessions active more recently are not scanned.", minimum=0, maximum=31_536_000
    )
    scan_sources: str = _setting(
        "", "Sources a start-up scan takes, separated by commas; empty: any."
    )
    scan_every_seconds: float = _setting(
        86_400.0,
        "How long after a scan the next one is due by itself.",
        minimum=1,
        maximum=31_536_000,
    )
    record_bytes_max: int = _setting(
        1_048_576,
        "The largest record, as UTF-8 or JSON; also the largest summary.",
        minimum=1024,
        maximum=67_108_864,
    )
    batch_records_max: int = _setting(
        1000, "The most records one `append_many` takes.", minimum=1, maximum=100_000
    )
    retain_recent: int = _setting(
        20, "Records a compaction keeps for the new session.", minimum=0, maximum=10_000
    )
    max_history_len: int = _setting(
        100, "Records a conversation keeps while memory is off.", minimum=1, maximum=100_000
    )
    agents: Mapping[str, bool] = field(
        default_factory=dict,
        metadata={"doc": "Whether memory is on, by agent: `agents.<name>.memory.enabled`."},
    )
    origins: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        for setting in described():
            object.__setattr__(self, setting.name, _checked(setting, getattr(self, setting.name)))
        if not isinstance(self.agents, Mapping):
            raise InvalidSetting(f"agents is a switch by name, not {self.agents!r}")
        for name, enabled in self.agents.items():
            if not isinstance(enabled, bool):
                raise InvalidSetting(f"agents.{name}.memory.enabled is true or false: {enabled!r}")

    @property
    def mark_policy(self) -> MarkPolicy:
        return _mark_policy(self.mark_threshold, self.mark_unit)

    @property
    def lease_policy(self) -> LeasePolicy:
        return LeasePolicy(
            lease_seconds=self.lease_seconds,
            failures_max=self.job_failures_max,
            takeovers_max=self.job_takeovers_max,
            backoff_seconds=self.backoff_seconds,
            backoff_seconds_max=self.backoff_seconds_max,
            running_max=self.worker_running_max,
        )

    def is_memory_enabled(self, agent_name: str) -> bool:
        return self.agents.get(agent_name, True)

    def path(self, agent_name: str | None = None) -> Path:
        """The database file: the global one, or an agent's own."""
        if agent_name is not None:
            folder = quote(agent_name, safe="").replace(".", "%2E")  # a name is never a path
            if len(folder) > FOLDER_BYTES_MAX:
                digest = sha256(agent_name.encode()).hexdigest()[:16]
                folder = f"{folder[: FOLDER_BYTES_MAX - 17]}-{digest}"
            return Path(self.data_dir).expanduser() / "agents" / folder / "memory.db"
        given = self.sqlite_path or "{data_dir}/memory.db"
        return Path(given.replace("{data_dir}", self.data_dir)).expanduser()


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """One setting as the reference shows it."""

    name: str
    type: type
    default: Any
    doc: str
    minimum: float | None
    maximum: float | None
    choices: tuple[str, ...] | None

    @property
    def environment_name(self) -> str:
        return f"RECOLLECT_{self.name.upper()}"


def described() -> Iterator[Described]:
    """The settings that have one value each, in the order of the reference."""
    hints = get_type_hints(Settings)
    for each in dataclasses.fields(Settings):
        if each.name in ("agents", "origins"):
            continue
        kind = hints[each.name]
        yield Described(
            name=each.name,
            type=str if kind == str | None else kind,
            default=_default(each),
            **each.metadata,
        )


def _default(setting: dataclasses.Field[Any]) -> Any:
    factory = setting.default_factory
    return setting.default if factory is dataclasses.MISSING else factory()


def load(
    explicit: Settings | Mapping[str, Any] | str | Path | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    directory: Path | None = None,
) -> Settings:
    """Settings from all sources. `explicit` is settings, a mapping of some, or a file to read.

    Complete settings are taken as they are; a file that is named replaces the search for one.
    """
    if isinstance(explicit, Settings):
        return explicit
    named = Path(explicit) if isinstance(explicit, str | Path) else None
    file = _find_file(directory or Path.cwd()) if named is None else named
    sources = [
        ({}, "") if file is None else (read_file(file), str(file)),
        _from_environment(os.environ if environ is None else environ),
        (_known(explicit, "argument") if isinstance(explicit, Mapping) else {}, "argument"),
    ]
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for found, origin in sources:
        values.update(found)
        origins.update({name: origin or f"RECOLLECT_{name.upper()}" for name in found})
    return Settings(**values, origins=origins)


def read_file(file: Path) -> dict[str, Any]:
    """The settings in a TOML or YAML file, the `modules` and `agents` sections included."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSetting(f"cannot read {file}: {error}") from error
    content = _parse_toml(file, text) if file.suffix == ".toml" else _parse_yaml(file, text)
    if not isinstance(content, dict):
        raise InvalidSetting(f"{file}: expected settings by name, found {type(content).__name__}")
    modules = _section(content.pop("modules", None), file, "modules")
    agents = _section(content.pop("agents", None), file, "agents")
    values = _known(content, str(file))
    if SQLITE_MODULE in modules:
        values |= _sqlite_module(_section(modules[SQLITE_MODULE], file, SQLITE_MODULE), file)
    if agents:
        values["agents"] = {
            str(name): _is_enabled(_section(agent, file, f"agents.{name}"), file, name)
            for name, agent in agents.items()
        }
    return values


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except PermissionError:  # somebody else's home: there are no settings for us
        return False


def _find_file(directory: Path) -> Path | None:
    for folder in (directory, _user_config_dir()):
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

    try:
        return yaml.safe_load(text) or {}
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InvalidSetting(f"{file} is not YAML: {error}") from error


def _section(value: Any, file: Path, name: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidSetting(f"{file}: {name} is a section, not {value!r}")
    return value


def _sqlite_module(section: Mapping[str, Any], file: Path) -> dict[str, Any]:
    names = {
        "path": "sqlite_path",
        "wal": "sqlite_wal",
        "busy_timeout": "sqlite_busy_timeout_ms",
    }
    for name in section:
        if name not in names:
            raise InvalidSetting(
                f"{file}: modules.{SQLITE_MODULE} has no {name!r}; it has {', '.join(names)}"
            )
    return {names[name]: value for name, value in section.items() if value is not None}


def _is_enabled(agent: Mapping[str, Any], file: Path, name: str) -> Any:
    enabled = _section(agent.get("memory"), file, f"agents.{name}.memory").get("enabled")
    return True if enabled is None else enabled


def _from_environment(environ: Mapping[str, str]) -> tuple[dict[str, Any], str]:
    found = {}
    for setting in described():
        text = environ.get(setting.environment_name)
        if text is not None:
            found[setting.name] = _parse(setting, text)
    return found, ""


def _known(values: Mapping[str, Any], origin: str) -> dict[str, Any]:
    names = [each.name for each in dataclasses.fields(Settings) if each.name != "origins"]
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


def _checked(setting: Described, given: Any) -> Any:
    """A value of the right type and within its bounds, or InvalidSetting."""
    value = given
    if setting.default is None and (value is None or value == ""):
        return None  # an empty variable is how a shell says that there is none
    if setting.type is float and type(value) is int and abs(value) < 2**53:
        value = float(value)
    if isinstance(value, Path) and setting.type is str:
        value = str(value)
    is_right_type = type(value) is setting.type  # a bool is no int here
    if not is_right_type:
        raise InvalidSetting(f"{setting.name} is {setting.type.__name__}, not {value!r}")
    if setting.choices is not None and value not in setting.choices:
        raise InvalidSetting(f"{setting.name} is one of {', '.join(setting.choices)}: {value!r}")
    low, high = setting.minimum, setting.maximum
    if low is not None and high is not None and not low <= value <= high:  # NaN is outside too
        raise InvalidSetting(f"{setting.name} lies between {low:,} and {high:,}: {value!r}")
    return value
