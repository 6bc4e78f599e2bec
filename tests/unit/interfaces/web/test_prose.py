"""P12: Markdown of a memory becomes text and links, and never anything that acts."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.interfaces.web.rendering import CHARS_MAX, CHARS_SHOWN, prose
from tests.tables import every_row
from tests.unit.interfaces.web.markup import Markup, read_markup

TEXT = frozenset({"p", "h1", "h2", "h3", "h4", "h5", "h6", "em", "strong", "s", "a", "hr", "br"})
BLOCKS = frozenset({"code", "pre", "blockquote", "ul", "ol", "li"})
TABLES = frozenset({"table", "thead", "tbody", "tr", "th", "td"})
HARMLESS = TEXT | BLOCKS | TABLES
PIECES = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](data:text/html,<script>alert(1)</script>)",
    "[x](vbscript:x)",
    "![x](https://elsewhere.example/spy.png)",
    "<a href='javascript:alert(1)'>x</a>",
    "[[~/memory/a|<b onclick=alert(1)>]]",
    '[[~/memory/"onmouseover="alert(1)]]',
    "[[javascript:alert(1)]]",
    "<javascript:alert(1)>",
    "<https://fine.example>",
    "[x]: javascript:alert(1)\n\n[x]",
    "```html\n<script>\n```",
    "| <svg onload=alert(1)> |\n|:-:|\n| b |",
    "&lt;script&gt;",
    "\x00",
    "\u202e",
]


def check(made: Markup) -> None:
    assert made.tags <= HARMLESS
    for tag, name, value in made.attributes:
        allowed = {("a", "href"), ("a", "rel"), ("code", "class"), ("ol", "start")}
        assert (tag, name) in allowed, (tag, name, value)
        if name == "href":
            assert value.startswith(("/ui/", "http://", "https://", "mailto:", "#", "?")) or (
                ":" not in value
            ), value


@every_row("piece", PIECES)
def test_nothing_in_a_text_acts(piece: str) -> None:
    check(read_markup(prose(piece, "/ui/s/x/documents/at?path=")))


@given(
    st.lists(st.sampled_from([*PIECES, "\n", " ", "[", "](", ")", "<", ">", "`", "|"]), max_size=12)
)
@settings(max_examples=300, deadline=None, derandomize=True)
def test_nothing_in_any_mixture_acts(pieces: list[str]) -> None:
    check(read_markup(prose("".join(pieces), "/ui/s/x/documents/at?path=")))


def test_documents_link_to_each_other() -> None:
    made = prose("See [[~/memory/people/ana b|Ana]] and [[~/memory/x]].", "/ui/at?path=")
    assert '<a href="/ui/at?path=~%2Fmemory%2Fpeople%2Fana%20b">Ana</a>' in made
    assert ">~/memory/x</a>" in made


def test_a_link_leads_to_the_document_it_means() -> None:
    made = prose("See [[plans]].", "/ui/at?path=", {"~/memory/plans": "~/memory/archive/plans"})
    assert 'href="/ui/at?path=~%2Fmemory%2Farchive%2Fplans"' in made


def test_a_link_elsewhere_learns_nothing_of_this_page() -> None:
    made = read_markup(prose("[there](https://elsewhere.example/x)"))
    assert ("a", "rel", "noopener noreferrer nofollow") in made.attributes


def test_of_a_long_text_the_beginning_is_rendered_and_the_rest_stands_as_it_is_written() -> None:
    """Rendering costs seconds where a text is made for it, and a page has few."""
    text = "*a*\n" * (CHARS_MAX // 4) + "*b* <b>bold</b>"
    shown = prose(text)
    assert shown.count("<em>a</em>") == CHARS_MAX // 4
    assert shown.endswith("*b* &lt;b&gt;bold&lt;/b&gt;</pre>")
    assert len(prose("x" * 5 * CHARS_SHOWN)) < 2 * CHARS_SHOWN
    assert prose("x" * (CHARS_MAX + 1)).endswith("x</p>\n<pre>x</pre>")
