"""Renders a view's answer as HTML, from one set of templates in which everything is escaped.

No text of memory can become markup, a script, a style or an unintended link: values go through
autoescape, links are built here from the names of views, and Markdown has its own module.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from importlib import resources
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from jinja2 import Environment, PackageLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markupsafe import Markup, escape

from recollect.documents.paths import read_path
from recollect.errors import InvalidPath
from recollect.interfaces.web.view import PageView

PACKAGE = "recollect.interfaces.web"
STATIC = "/ui/static"
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_STEPS = (
    (timedelta(days=365), "year"),
    (timedelta(days=30), "month"),
    (timedelta(days=1), "day"),
    (timedelta(hours=1), "hour"),
    (timedelta(minutes=1), "minute"),
)
MICROS = 1_000_000


class Renderer:
    """The templates, with what they can use."""

    def __init__(self, views: Mapping[str, PageView]) -> None:
        self._views = views
        self._environment = Environment(
            loader=PackageLoader(PACKAGE),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._environment.globals.update(link=self.link, static=static)
        self._environment.filters.update(
            moment=moment,
            day=day,
            clock=clock,
            ago=ago,
            count=lambda number: f"{number:,}",
            money=money,
            prose=prose,
            pretty=pretty,
            words=words,
            many=many,
            figure=figure,
            lines_of_diff=lines_of_diff,
        )
        self.templates = frozenset(self._environment.list_templates())

    def render(self, template: str, content: Mapping[str, Any]) -> str:
        return self._environment.get_template(template).render(content)

    @pass_context
    def link(self, context: Context, name: str, _query: Any = None, **places: str) -> str:
        """Where a view is; the space is this one unless another is named."""
        return self.path(name, _query, **{"space": context.get("space_name") or "", **places})

    def path(self, name: str, query: Mapping[str, Any] | None = None, **places: str) -> str:
        parts = [_filled(part, places) for part in self._views[name].path.strip("/").split("/")]
        asked = {key: value for key, value in (query or {}).items() if value not in (None, "")}
        return "/" + "/".join(parts) + (f"?{urlencode(asked)}" if asked else "")


def _filled(part: str, places: Mapping[str, str]) -> str:
    return quote(places[part.strip("{}")], safe="") if part.startswith("{") else part


@lru_cache
def files() -> Mapping[str, tuple[bytes, str]]:
    """The files that go with the pages, by name: what they say, and their type."""
    found = resources.files(PACKAGE).joinpath("static")
    return {
        each.name: (each.read_bytes(), TYPES["." + each.name.rpartition(".")[2]])
        for each in found.iterdir()
        if "." + each.name.rpartition(".")[2] in TYPES
    }


@lru_cache
def static(name: str) -> str:
    """Where such a file is; a changed one is elsewhere, so that browsers may keep them."""
    return f"{STATIC}/{name}?v={hashlib.sha256(files()[name][0]).hexdigest()[:12]}"


def moment(at: datetime | None) -> Markup:
    """A time as people read it, with the exact one for machines and on hover."""
    return Markup("–") if at is None else _time(at, at.strftime("%Y-%m-%d %H:%M"), "moment")


def day(at: datetime | None) -> Markup:
    """The day of a time."""
    return Markup("–") if at is None else _time(at, at.strftime("%Y-%m-%d"), "day")


def clock(at: datetime) -> Markup:
    """The time of a day that stands above it."""
    return _time(at, at.strftime("%H:%M"), "clock")


def ago(at: datetime | None, now: datetime) -> Markup:
    """Return how long ago a time was, or how long it is until then."""
    return Markup("–") if at is None else _time(at, _distance(now - at), "ago")


def _time(at: datetime, words: str, form: str) -> Markup:
    """A time in UTC; a browser with scripts shows it in this form as its own clock has it."""
    return Markup('<time datetime="{}" title="{} UTC" data-as="{}">{}</time>').format(
        at.isoformat(), f"{at:%Y-%m-%d %H:%M}", form, words
    )


def _distance(passed: timedelta) -> str:
    size = abs(passed)
    for step, name in _STEPS:
        if size >= step:
            number = size // step
            said = f"{number} {name}{'' if number == 1 else 's'}"
            return f"{said} ago" if passed > timedelta(0) else f"in {said}"
    return "just now" if passed >= timedelta(0) else "in a moment"


def money(micros: int | None) -> str:
    return "–" if micros is None else f"{micros / MICROS:,.4f}"


def figure(value: float) -> str:
    """A number as a chart has room for it."""
    for size, unit in ((1_000_000, " M"), (1000, " k")):
        if value >= size and value >= 10_000:
            return f"{value / size:,.4g}{unit}"
    return f"{value:,.4g}" if value < 1000 else f"{value:,.0f}"


def pretty(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, default=str, sort_keys=True)


def many(noun: str) -> str:
    return f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"


def words(name: object) -> Markup:
    """The name of a state as people say it: succeeded_no_output, extract-again."""
    return escape(str(name).replace("_", " ").replace("-", " "))


CHARS_MAX = 50_000  # that are rendered: of the worst text in about two seconds
CHARS_SHOWN = 1_000_000
_LINK = re.compile(r"\[\[([^\[\]|\n]{1,1000})(?:\|([^\[\]\n]{1,1000}))?\]\]")
_SCHEMES = frozenset({"", "http", "https", "mailto"})


def prose(text: str, links: str = "", meant: Mapping[str, str] | None = None) -> Markup:
    """A text as HTML. `links` is where documents are shown; a path is appended to it, quoted.

    `meant` has the path of what a link means, by its own path, where that is another.

    Of a long one only the beginning is rendered; the rest follows as it is written.
    """
    at = len(text) if len(text) <= CHARS_MAX else text.rfind("\n", 1, CHARS_MAX) + 1 or CHARS_MAX
    made = Markup(_markdown().render(text[:at], {"documents": links, "meant": meant or {}}))
    return made + Markup("<pre>{}</pre>").format(text[at:CHARS_SHOWN]) if at < len(text) else made


@lru_cache
def _markdown() -> MarkdownIt:
    made = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    made.disable(["image", "html_block", "html_inline"])
    made.validateLink = _is_harmless  # type: ignore[method-assign]
    made.inline.ruler.before("link", "document_link", _document_link)
    made.add_render_rule("link_open", _link_open)
    for cell in ("th_open", "td_open"):
        made.add_render_rule(cell, _cell_open)
    return made


def _is_harmless(url: str) -> bool:
    try:
        return urlsplit(url.strip()).scheme.casefold() in _SCHEMES
    except ValueError:
        return False


def _document_link(state: StateInline, silent: bool) -> bool:
    found = _LINK.match(state.src, state.pos)
    if found is None:
        return False
    documents = state.env.get("documents", "")
    if not silent:
        path, alias = found[1].strip(), (found[2] or found[1]).strip()
        if documents:
            token = state.push("link_open", "a", 1)
            target = state.env["meant"].get(_full(path), path)
            token.attrs = {"href": documents + quote(target, safe="")}
            token.meta = {"is_document": True}
        state.push("text", "", 0).content = alias
        if documents:
            state.push("link_close", "a", -1)
    state.pos = found.end()
    return True


def _full(path: str) -> str:
    try:
        return read_path(path).text
    except InvalidPath:
        return path


def _link_open(self: Any, tokens: Any, at: int, options: Any, env: Any) -> str:
    token = tokens[at]
    if not token.meta.get("is_document"):
        # What is behind a link of a memory is nobody's promise: it learns nothing of this page.
        token.attrSet("rel", "noopener noreferrer nofollow")
    rendered: str = self.renderToken(tokens, at, options, env)
    return rendered


def _cell_open(self: Any, tokens: Any, at: int, options: Any, env: Any) -> str:
    tokens[at].attrs.pop("style", None)  # how it is aligned, in a way that the policy forbids
    rendered: str = self.renderToken(tokens, at, options, env)
    return rendered


def lines_of_diff(unified: str, head: int = 2) -> list[tuple[str, str]]:
    """The lines of a difference, each behind its kind; the first, its head, name its sides."""
    return [
        (_kind(line, is_head=place < head), line) for place, line in enumerate(unified.splitlines())
    ]


def _kind(line: str, *, is_head: bool) -> str:
    """What it is: added, gone, a place in the text, or there in both."""
    if line.startswith("@@") or (is_head and line.startswith(("--- ", "+++ "))):
        return "place"
    return {"+": "add", "-": "gone"}.get(line[:1], "same")
