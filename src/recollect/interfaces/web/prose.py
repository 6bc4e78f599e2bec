"""Markdown as HTML that can do nothing: no markup of its own, no script, no image from elsewhere.

Documents link to each other as [[path]] or [[path|words]]; such a link leads to the document.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import quote, urlsplit

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markupsafe import Markup

from recollect.documents.paths import read_path
from recollect.errors import InvalidPath

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
