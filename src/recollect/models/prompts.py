"""Prompts: Markdown files with a version, which a file of the user's own may replace.

A prompt opens with its version, alone (`version: 3` and an empty line) or between lines of `---`.
Variables are written `{{name}}`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from recollect.errors import InvalidSetting

PROMPT_BYTES_MAX = 262_144

_VERSION = re.compile(r"^version:[ \t]*(\S+)[ \t]*$", re.MULTILINE)
_VARIABLE = re.compile(r"\{\{[ \t]*([a-z][a-z0-9_]*)[ \t]*\}\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A prompt with places to fill. `version` is stored with everything the prompt made."""

    name: str
    text: str
    version: str

    @property
    def variables(self) -> frozenset[str]:
        return frozenset(_VARIABLE.findall(self.text))

    def fill(self, **values: str) -> str:
        """The text with every variable replaced; what is inserted is not looked at again."""
        if self.variables != values.keys():
            unknown = sorted(self.variables - values.keys())
            missing = sorted(values.keys() - self.variables)
            raise InvalidSetting(
                f"prompt {self.name}: "
                + "; ".join(
                    [f"{{{{{name}}}}} is not known" for name in unknown]
                    + [f"{{{{{name}}}}} is missing" for name in missing]
                )
            )
        return _VARIABLE.sub(lambda match: values[match[1]], self.text)


def load_prompt(directory: Path, name: str, override_dir: str | None = None) -> Prompt:
    """The prompt `<name>.md` of a directory, or the one of that name in the user's own."""
    shipped = _parsed(name, (directory / f"{name}.md").read_text(encoding="utf-8"), version="0")
    if override_dir is None:
        return shipped
    own = _read_override(Path(override_dir).expanduser(), name)
    if own is None:
        return shipped
    replaced = _parsed(name, own, version=shipped.version)
    if not replaced.text:
        raise InvalidSetting(f"prompts_dir: {name}.md is empty")
    digest = sha256(own.encode()).hexdigest()[:8]
    return Prompt(name=name, text=replaced.text, version=f"{replaced.version}+{digest}")


def _read_override(directory: Path, name: str) -> str | None:
    if not directory.is_dir():
        raise InvalidSetting(f"prompts_dir is not a directory: {directory}")
    path = directory / f"{name}.md"
    try:
        with path.open("rb") as file:
            content = file.read(PROMPT_BYTES_MAX + 1)
        if len(content) > PROMPT_BYTES_MAX:
            raise InvalidSetting(f"prompts_dir: {path} is over {PROMPT_BYTES_MAX} bytes")
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSetting(f"prompts_dir: {path} cannot be read: {error}") from error


def _parsed(name: str, content: str, *, version: str) -> Prompt:
    """A prompt from its file; `version` is the one it has when it names none."""
    is_fenced = content.startswith("---\n")
    head, end, text = content.removeprefix("---\n").partition("\n---\n" if is_fenced else "\n\n")
    stated = _VERSION.search(head) if end and (is_fenced or head.startswith("version:")) else None
    if stated is None:
        return Prompt(name=name, text=content.strip(), version=version)
    return Prompt(name=name, text=text.strip(), version=stated[1])
