"""What redaction costs on clean text, how that grows, and what it finds in the corpus.

With `--data DIR` also the speed on the files below it.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path

from bench.measure import take_turns
from bench.report import Line
from bench.settings import Run
from bench.texts import SEED, make_texts
from recollect.redaction import Redactor
from recollect.redaction.loading import bundled_rules
from tests.redaction_corpus import making

MILLISECONDS_PER_MB_MAX = 1000 / 3  # the target is at least 3 MB/s
GROWTH_MAX = 6.0  # four times the text; 4 is linear, 16 is quadratic
REAL_BYTES_MAX = 50_000_000
REAL_SUFFIXES = frozenset(
    {".jsonl", ".json", ".md", ".txt", ".py", ".log", ".js", ".ts", ".toml", ".yaml", ".rst"}
)

CODE = (
    "def load_{w}(path: Path, *, key: str = 'name', token: str | None = None) -> dict[str, int]:\n"
    "    counts = {{}}\n    for line in path.read_text().splitlines():\n"
    "        word = line.split('=')[0]  # the key of the pair\n"
    "        counts[word] = counts.get(word, {n}) + 1\n"
    "    if token is None:\n        token = os.environ['{w}_TOKEN']\n    return counts\n\n"
)
LOG = (
    "2026-03-01T10:{m:02}:{m:02}.{n:03}Z INFO worker={h} session={h}-{m} claimed job {n}, "
    "max_tokens={n} GET /api/{w}/{n}?page={m} 200 {n}ms https://example.org/{w}#{h}\n"
)
WORDS = ("order", "train", "garden", "invoice", "window", "address", "author", "passage")
HOSTILE = ("password=", "password is ", 'token="', "eyJ", "://", "-----BEGIN PRIVATE KEY-----", "a")


def measure_redaction(run: Run) -> Iterator[Line]:
    """Megabytes per second, growth, and the figures of the corpus."""
    redactor = _redactor()
    size = run.scaled(1_000_000, 200_000)
    clean = {"prose": _prose(size), "code": _filled(CODE, size), "logs": _filled(LOG, size)}
    yield from _speeds(redactor, clean, "redaction of clean text (CPU)", run.scaled(7, 2))
    yield from _growth(redactor, run)
    yield from _corpus(redactor)
    if run.data is not None:
        yield from measure_files(run.data)


def measure_files(directory: Path) -> Iterator[Line]:
    """The same for the files below a directory, one figure for each suffix."""
    redactor = _redactor()
    texts: dict[str, list[str]] = {}
    left = REAL_BYTES_MAX
    for path in sorted(directory.rglob("*")):
        if left > 0 and path.is_file() and path.suffix in REAL_SUFFIXES:
            text = path.read_text(encoding="utf-8", errors="replace")
            texts.setdefault(path.suffix, []).append(text)
            left -= len(text)
    whole = {suffix: "\n".join(parts) for suffix, parts in texts.items()}
    yield from _speeds(redactor, whole, "redaction of real files (CPU)", 1)
    for suffix, text in whole.items():
        yield Line(
            group="what it redacts of real files",
            name=f"*{suffix}, of {len(text.split()):,} words",
            unit="found",
            measured=float(len(redactor.find(text))),
            is_ratio=False,
        )


def _redactor() -> Redactor:
    return Redactor(bundled_rules(), frozenset(), b"the salt of the benchmark")


def _prose(size: int) -> str:
    return "\n".join(make_texts(size // 200))[:size]


def _filled(template: str, size: int) -> str:
    rng = random.Random(SEED)
    parts: list[str] = []
    done = 0
    while done < size:
        parts.append(
            template.format(
                w=rng.choice(WORDS),
                n=rng.randrange(1000),
                m=rng.randrange(60),
                h=f"{rng.getrandbits(32):08x}",
            )
        )
        done += len(parts[-1])
    return "".join(parts)[:size]


def _speeds(
    redactor: Redactor, texts: dict[str, str], group: str, repetitions: int
) -> Iterator[Line]:
    actions = {name: partial(redactor.redact, text) for name, text in texts.items()}
    costs = take_turns(actions, repetitions=repetitions, calls=1)
    for name, text in texts.items():
        megabytes = len(text.encode("utf-8", "surrogatepass")) / 1e6
        milliseconds = costs[name].cpu_us / 1000 / megabytes
        yield Line(
            group=group,
            name=f"{name}, {megabytes:.1f} MB",
            unit="ms/MB",
            measured=milliseconds,
            target=MILLISECONDS_PER_MB_MAX,
            is_ratio=False,
            note=f"{1000 / milliseconds:.1f} MB/s",
        )


def _growth(redactor: Redactor, run: Run) -> Iterator[Line]:
    small = run.scaled(100_000, 20_000)
    for unit in HOSTILE:
        text = unit * (4 * small // len(unit))
        costs = take_turns(
            {
                "small": partial(redactor.redact, text[:small]),
                "large": partial(redactor.redact, text),
            },
            repetitions=2,
            calls=1,
        )
        yield Line(
            group="redaction and the length of a hostile text (CPU)",
            name=f"{unit!r} over and over, {4 * small:,} characters and {small:,}",
            unit="ms",
            measured=costs["large"].cpu_us / 1000,
            limit=costs["small"].cpu_us / 1000,
            target=GROWTH_MAX,
        )


def _corpus(redactor: Redactor) -> Iterator[Line]:
    for half in making.Half:
        for name, positives, target in (
            ("structured", _both_seeds(making.structured, half), 1.0),
            ("prose", _both_seeds(making.in_prose, half), 10.0),
        ):
            kept = [
                any(hidden in redactor.redact(each.text) for hidden in each.hidden)
                for each in positives
            ]
            yield _share(f"{name} secrets missed, {half}", sum(kept), len(kept), target)
        words = taken = 0
        for seed in (making.SEED, making.CHECK_SEED):
            for text in making.benign_texts(half, seed=seed):
                words += len(text.split())
                taken += sum(len(text[f.start : f.end].split()) for f in redactor.find(text))
        yield _share(f"benign words redacted, {half}", taken, words, 0.5)


def _both_seeds(make: making.Maker, half: making.Half) -> Iterable[making.Positive]:
    return chain(*(make(half, seed=seed) for seed in (making.SEED, making.CHECK_SEED)))


def _share(name: str, part: int, whole: int, target: float) -> Line:
    return Line(
        group="redaction of the corpus, which is of our own making",
        name=name,
        unit="%",
        measured=100 * part / whole,
        target=target,
        is_ratio=False,
        note=f"{part:,} of {whole:,}",
    )
