"""`recollect config`: every setting with its value, where it came from, its default and bounds."""

from __future__ import annotations

from typing import Any

import click

from recollect.config import Described, Settings, described
from recollect.interfaces.cli.output import NONE, note, one_line, table, write, write_json
from recollect.interfaces.cli.target import Target, with_target
from recollect.store.address import without_password


@click.command("config")
@with_target
def command(target: Target) -> None:
    """Show every setting: its value, where it came from, its default and its bounds.

    An option wins over RECOLLECT_… in the environment, which wins over recollect.toml or
    recollect.yaml in the working directory or the user's configuration directory. No store is
    opened, and passwords in addresses are not shown.

    \b
    Examples:
      recollect config
      RECOLLECT_MARK_THRESHOLD=10 recollect config --json
    """
    settings = target.settings()
    if target.as_json:
        write_json(_shape(settings))
        return
    rows = [
        (
            setting.name,
            in_words(_value(settings, setting)),
            settings.origins.get(setting.name, "default"),
            in_words(setting.default),
            bounds_in_words(setting),
        )
        for setting in described()
    ]
    rows += [
        (
            f"agents.{name}.memory.enabled",
            in_words(enabled),
            _origin(settings, "agents"),
            "true",
            "",
        )
        for name, enabled in settings.agents.items()
    ]
    for line in table(("SETTING", "VALUE", "FROM", "DEFAULT", "BOUNDS"), rows):
        write(line)
    note(f"Commands without --store open {one_line(_opened(settings))}.")


def in_words(value: object) -> str:
    """A setting's value as a settings file would spell it."""
    match value:
        case None:
            return NONE
        case bool():
            return "true" if value else "false"
        case "":
            return '""'
        case _:
            return str(value)


def bounds_in_words(setting: Described) -> str:
    if setting.choices is not None:
        return " | ".join(setting.choices)
    if setting.type is bool:
        return "true | false"
    if setting.minimum is None or setting.maximum is None:
        return ""
    return f"{setting.minimum:g} … {setting.maximum:.12g}"


def _value(settings: Settings, setting: Described) -> Any:
    value = getattr(settings, setting.name)
    return without_password(value) if setting.name == "store" and value else value


def _origin(settings: Settings, name: str) -> str:
    return settings.origins.get(name, "default")


def _opened(settings: Settings) -> str:
    if settings.database == "per-agent" and settings.origins.get("store") != "argument":
        return f"nothing: database is per-agent, in {settings.path('NAME')}"
    if settings.store is not None:
        return without_password(settings.store)
    if not settings.data_dir and settings.sqlite_path is None:
        return "nothing: data_dir is empty and memory is off"
    return str(settings.path())


def _shape(settings: Settings) -> dict[str, Any]:
    return {
        "settings": {
            setting.name: {
                "value": _value(settings, setting),
                "origin": _origin(settings, setting.name),
                "default": setting.default,
                "minimum": setting.minimum,
                "maximum": setting.maximum,
                "choices": setting.choices,
                "environment": setting.environment_name,
                "doc": setting.doc,
            }
            for setting in described()
        },
        "agents": {
            name: {
                "memory": {"enabled": enabled},
                "data_dir": settings.agent_data_dirs.get(name),
                "origin": _origin(settings, "agents"),
            }
            for name, enabled in settings.agents.items()
        },
    }
