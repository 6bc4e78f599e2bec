"""Checks the parts of a document: within limits, storable in every database, and redacted. Pure.

All input of a caller passes through here before any lock is taken; what does not pass raises a
typed error, and nothing is stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from recollect import collection
from recollect.documents.paths import DocumentPath
from recollect.documents.reading import read_place
from recollect.errors import InvalidPath, InvalidValue, TooLarge
from recollect.types.facts import Source
from recollect.types.pages import Author, AuthorKind, Because, Content

if TYPE_CHECKING:
    from recollect.redaction import Redactor

TITLE_CHARS_MAX = 300
DESCRIPTION_CHARS_MAX = 2000
REASON_CHARS_MAX = 2000
TAGS_MAX = 64
TAG_CHARS_MAX = 100
LINKS_MAX = 1000
SOURCES_MAX = 1000
FACTS_MAX = 1000
QUOTE_CHARS_MAX = 2000
NAME_CHARS_MAX = 256
ID_CHARS_MAX = 256


def check_text(text: object, what: str, chars_max: int) -> str:
    if not isinstance(text, str):
        raise InvalidValue(f"{what} is text, not {type(text).__name__}")
    if len(text) > chars_max:
        raise TooLarge(f"{what} has at most {chars_max:,} characters, and this has {len(text):,}")
    return collection.storable(text)


def check_texts(texts: Iterable[str] | None, what: str) -> tuple[str, ...] | None:
    """Several texts. One text is not: it would be taken letter by letter."""
    if texts is None:
        return None
    if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
        raise InvalidValue(f"{what} are a list of texts, not {type(texts).__name__}")
    return tuple(texts)


def check_expected(version: int | None) -> int | None:
    return None if version is None else collection.check_seq(version, "an expected version")


def check_clean(path: DocumentPath, redactor: Redactor) -> DocumentPath:
    """Paths are shown, listed and indexed as they are: one with a secret in it is refused."""
    if any(redactor.redact_name(text) != text for text in (path.text, *path.slugs)):
        # Without the path: errors are logged.
        raise InvalidPath("what looks like a secret cannot be part of a path")
    return path


def check_content(
    content: Content, redactor: Redactor, body_bytes_max: int
) -> tuple[Content, list[DocumentPath]]:
    """What a document says as it may be stored, and the paths that it links to."""
    redact = redactor.redact
    body = check_text(content.body, "a body", body_bytes_max)
    if len(body) * 4 > body_bytes_max and len(body.encode()) > body_bytes_max:
        raise TooLarge(
            f"a body has at most {body_bytes_max:,} bytes: split it, or raise document_bytes_max"
        )
    if len(content.tags) > TAGS_MAX or len(content.links) > LINKS_MAX:
        raise TooLarge(f"a document has at most {TAGS_MAX} tags and {LINKS_MAX:,} links")
    paths = [check_clean(read_place(link), redactor) for link in content.links]
    tags = [check_text(tag, "a tag", TAG_CHARS_MAX) for tag in content.tags]
    about = check_text(content.description, "a description", DESCRIPTION_CHARS_MAX)
    checked = Content(
        title=redact(check_text(content.title, "a title", TITLE_CHARS_MAX)) or "untitled",
        description=redact(about),
        body=redact(body),
        tags=tuple(dict.fromkeys(redactor.redact_name(tag) for tag in tags if tag.strip())),
        links=tuple(dict.fromkeys(path.text for path in paths)),
    )
    return checked, paths


def check_because(
    author: Author,
    reason: str,
    sources: Sequence[Source],
    facts: Sequence[str],
    redactor: Redactor,
) -> Because:
    given = check_texts(facts, "facts") or ()
    if len(sources) > SOURCES_MAX or len(given) > FACTS_MAX:
        raise TooLarge(
            f"a version rests on at most {SOURCES_MAX:,} sources and {FACTS_MAX:,} facts"
        )
    return Because(
        author=check_author(author),
        reason=redactor.redact(check_text(reason, "a reason", REASON_CHARS_MAX)),
        sources=tuple(_checked_source(each, redactor) for each in sources),
        facts=tuple(_checked_id(fact) for fact in given),
    )


def check_author(author: Author) -> Author:
    name = check_text(author.name, "an author's name", NAME_CHARS_MAX)
    return Author(kind=AuthorKind(author.kind), name=name)


def _checked_source(source: Source, redactor: Redactor) -> Source:
    if not isinstance(source, Source):
        raise InvalidValue(f"a source is a Source(session_id=…), not {type(source).__name__}")
    quote = check_text(source.quote, "a quote", QUOTE_CHARS_MAX)
    return Source(
        session_id=_checked_id(source.session_id),
        seq=collection.check_seq(source.seq),
        seq_to=collection.check_seq(source.seq_to),
        quote=redactor.redact(quote),
    )


def _checked_id(value: str) -> str:
    if len(collection.check_id(value)) > ID_CHARS_MAX:
        raise TooLarge(f"an id has at most {ID_CHARS_MAX} characters")
    return value
