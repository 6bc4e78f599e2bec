"""What comes back: a page in the tree, a question with its sources, and a block for a prompt."""

from __future__ import annotations

from collections.abc import Iterator

from recollect.demo.stage import Stage, Step
from recollect.recollection import Hit

QUESTION = "Where does Ana live now?"
HITS = 3
TOKENS = 200


def play_recall(stage: Stage) -> Iterator[Step]:
    """Reads only, but for a page that is written first."""
    yield _page(stage)
    yield _recall(stage)
    yield _context(stage)


def _page(stage: Stage) -> Step:
    documents = stage.space.documents
    page = documents.write("people/ana", "Ana plans a trip. See [[places/porto]].", reason="demo")
    again = documents.write("people/ana", page.body, reason="the same once more")
    broken = documents.broken_links()
    documents.write("places/porto", "Hills, tiles and a river.", reason="demo")
    return Step(
        title="A page in the tree",
        story="Documents are Markdown at a path, every version kept. A link to a page that is not "
        "there yet comes alive when it is written; writing the same again makes no version.",
        results=(
            f"{page.path}: version {page.version}, then {again.version}",
            f"links that lead nowhere: {len(broken)} before, {len(documents.broken_links())} now",
        ),
    )


def _recall(stage: Stage) -> Step:
    hits = stage.space.recall(QUESTION, limit=HITS)
    return Step(
        title="Recall",
        story="Facts, pages, summaries and every record in one list, by a question in plain words. "
        "No model is asked; each hit has its sources, and the reasons for its place.",
        results=(f"recall({QUESTION!r})", *(line for hit in hits for line in _lines(hit))),
    )


def _context(stage: Stage) -> Step:
    block = stage.space.context(QUESTION, max_tokens=TOKENS, kinds=["fact", "document"])
    return Step(
        title="A block for a prompt",
        story="The same for an agent: fenced as data, each line with a mark to cite it by, within "
        "its budget to the token. What is only shown is not used; what was cited is.",
        results=(
            f"context(…, max_tokens={TOKENS}) -> {block.token_count} tokens",
            *block.text.splitlines(),
            f"cite(block, 'In Porto [m1].') -> {stage.space.cite(block, 'In Porto [m1].')} used",
        ),
    )


def _lines(hit: Hit) -> Iterator[str]:
    text = " ".join(hit.text.split())
    yield f"{hit.score:.2f}  {hit.kind}: {text if len(text) <= 80 else text[:79] + '…'}"
    reasons = ", ".join(f"{name} {value:.2f}" for name, value in hit.why.items())
    source = hit.sources[0] if hit.sources else None
    yield f"      {reasons}" + (f"; from record {source.seq}" if source else f"; at {hit.id}")
