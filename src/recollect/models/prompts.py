"""Prompts: Markdown files with a version, which a file of the user's own may replace.

A prompt opens with its version, alone (`version: 3` and an empty line) or between lines of `---`.
Variables are written `{{name}}`; a file of the user's own has to have those of the one it replaces.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from recollect.errors import InvalidSetting

PROMPT_BYTES_MAX = 262_144
PACKAGE = Path(__file__).parents[1]
NEARNESS_MIN = 0.75  # of a file's name to a prompt's: nobody's notes are so like it

_VERSION = re.compile(r"^version:[ \t]*(\S+)[ \t]*$", re.MULTILINE)
_VARIABLE = re.compile(r"\{\{[ \t]*([a-z][a-z0-9_]*)[ \t]*\}\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A prompt with places to fill. `version` is stored with everything the prompt made."""

    name: str
    text: str
    version: str

    @property
    def variables(self) -> tuple[str, ...]:
        """Each once, as they come."""
        return tuple(dict.fromkeys(_VARIABLE.findall(self.text)))

    def check(self, names: Iterable[str]) -> None:
        """Raise InvalidSetting unless these are the variables it has."""
        own, wanted = set(self.variables), set(names)
        if own != wanted:
            unknown = [f"{{{{{name}}}}} is not known" for name in sorted(own - wanted)]
            missing = [f"{{{{{name}}}}} is missing" for name in sorted(wanted - own)]
            raise InvalidSetting(f"prompt {self.name}: {'; '.join(unknown + missing)}")

    def fill(self, **values: str) -> str:
        """The text with every variable replaced; what is inserted is not looked at again."""
        self.check(values)
        return _VARIABLE.sub(lambda match: values[match[1]], self.text)


def shipped_prompts() -> dict[str, Path]:
    """The file of every prompt of the package, by its name."""
    return {path.stem: path for path in sorted(PACKAGE.glob("*/prompts/*.md"))}


def check_prompts(override_dir: str | None) -> None:
    """Raise InvalidSetting where a file of the user's own cannot take the place of a prompt.

    A file that is nearly named like a prompt was meant to be one; others are left alone.
    """
    if override_dir is None:
        return
    import difflib  # only for those who have prompts of their own

    shipped = shipped_prompts()
    for name, path in shipped.items():
        load_prompt(path.parent, name, override_dir)
    for path in sorted(Path(override_dir).expanduser().glob("*.md")):
        near = difflib.get_close_matches(path.stem.lower(), shipped, n=1, cutoff=NEARNESS_MIN)
        if near and path.stem not in shipped:
            raise InvalidSetting(
                f"prompts_dir: {path.name} replaces no prompt; did you mean {near[0]}.md?"
            )


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
    replaced.check(shipped.variables)
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
