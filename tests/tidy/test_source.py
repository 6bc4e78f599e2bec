"""The house style, watched on the source as it is; the rules themselves are in rules.py."""

from __future__ import annotations

import hashlib
import re
import subprocess
from pathlib import Path

import pytest

from tests.tables import every_row
from tests.tidy import rules
from tests.tidy.source_tree import SourceTree

ROOT = Path(__file__).resolve().parents[2]
TREE = SourceTree(root=ROOT / "src", package="recollect")
CONFORMANCE = SourceTree(root=ROOT / "conformance", package="recollect_conformance")

every_tree = pytest.mark.parametrize("tree", [TREE, CONFORMANCE], ids=lambda tree: tree.package)

# A module may import what stands in its own layer or above in this list, never below. A new module
# or package directly below src/recollect has to be given its place here.
LAYERS: tuple[frozenset[str], ...] = (
    frozenset({"errors", "types", "descriptors", "messages", "languages", "times", "stemming"})
    | frozenset({"quoting", "quarantine", "progress", "patterns", "references"})
    | frozenset({"clock", "ids", "crashpoints"}),
    frozenset({"config", "observing"}),
    frozenset({"store"}),
    frozenset({"collection", "redaction", "models", "embedding"}),
    frozenset({"leases", "sweeps", "processing", "runtime", "context_log"}),
    frozenset({"extraction", "phase1"}),
    frozenset({"session", "worker"}),
    frozenset({"documents", "adapters", "recall", "context", "topics", "pages"}),
    frozenset({"agents", "facts"}),
    frozenset({"consolidation"}),
    frozenset({"pipeline", "space", "operations", "forgetting"}),
    frozenset({"memory", "verbs", "coroutines", "aio"}),
    frozenset({"importers"}),
    frozenset({"hooks", "compat"}),
    frozenset({"__init__"}),  # the public names: only the interfaces may start from them
    frozenset({"interfaces", "demo", "benchmarks", "__main__"}),
)

# (module, what it imports inside a function): what would cost every start if it were loaded there.
LAZY_IMPORTS: frozenset[tuple[str, str]] = frozenset(
    {
        ("recollect", "<dynamic>"),  # each public name when it is asked for
        ("recollect.compat", "<dynamic>"),  # other libraries' verbs, when they are asked for
        ("recollect.pipeline", "recollect.agents.loop"),
        ("recollect.pipeline", "recollect.agents.memory_agent"),
        ("recollect.pipeline", "recollect.agents.runner"),
        ("recollect.pipeline", "recollect.consolidation.agent"),
        ("recollect.pipeline", "recollect.consolidation.files"),
        ("recollect.pipeline", "recollect.consolidation.generations"),
        ("recollect.pipeline", "recollect.consolidation.run"),
        ("recollect.pipeline", "recollect.types.pages"),
        ("recollect.pipeline", "recollect.documents.paths"),
        ("recollect.pipeline", "recollect.documents.scope"),
        ("recollect.pipeline", "recollect.documents.tree"),
        ("recollect.pipeline", "recollect.embedding.background"),
        ("recollect.pipeline", "recollect.embedding.background"),
        ("recollect.pipeline", "recollect.extraction.run"),
        ("recollect.pipeline", "recollect.extraction.plan"),
        ("recollect.pipeline", "recollect.extraction.spend"),
        ("recollect.pipeline", "recollect.pages.filing"),
        ("recollect.pipeline", "recollect.processing"),
        ("recollect.pipeline", "recollect.types.status"),
        ("recollect.pipeline", "recollect.worker"),
        ("recollect.recall.recaller", "recollect.embedding.protocol"),
        ("recollect.recall.recaller", "recollect.recall.meaning"),
        ("recollect.runtime", "recollect.embedding.openai"),
        ("recollect.runtime", "recollect.models.jobs"),
        ("recollect.runtime", "recollect.redaction"),
        ("recollect.config.sources", "yaml"),  # only for settings written in YAML
        ("recollect.config.settings", "platformdirs"),  # when settings are made
        ("recollect.config.settings", "recollect.types.agents"),  # where there are agents
        ("recollect.config.settings", "recollect.types.records"),  # a hook has little more
        ("recollect.config.settings", "recollect.types.generations"),
        ("recollect.config.sources", "platformdirs"),
        ("recollect.config.sources", "tomllib"),  # only for settings written in TOML
        ("recollect.config.sources", "difflib"),  # only for the hint about a name that is not known
        ("recollect.store.opening", "recollect.store.postgres"),  # psycopg is an extra
        ("recollect.store.opening", "recollect.store.observed"),  # where somebody looks
        ("recollect.store.relational.store", "<dynamic>"),  # each aggregate when it is asked for
        ("recollect.store.relational.facts", "recollect.store.relational.derived"),  # for edits
        ("recollect.store.relational.facts", "recollect.store.relational.page_inputs"),
        ("recollect.store.relational.facts", "recollect.store.relational.review"),
        ("recollect.store.relational.fact_changes", "recollect.quarantine"),  # many a pattern
        ("recollect.store.relational.session_keys", "recollect.store.relational.modes"),  # changed
        ("recollect.observing.traces", "opentelemetry"),  # an extra
        ("recollect.memory", "recollect.models.jobs"),
        ("recollect.memory", "recollect.models.prompts"),
        ("recollect.models.prompts", "difflib"),
        ("recollect.models.jobs", "recollect.models.served"),  # brings the HTTP client
        ("recollect.languages", "tomllib"),  # only where a text is read
        ("recollect.times.lexicon", "tomllib"),  # the same
        ("recollect.extraction.rules.rulebook", "tomllib"),  # with the rules, on first use
        ("recollect.memory", "recollect.recall.recaller"),
        ("recollect.space", "recollect.recall.recap"),
        ("recollect.space", "recollect.recall.replay"),
        ("recollect.space", "recollect.recall.checking"),
        ("recollect.pipeline", "recollect.recall.checking"),
        ("recollect.hooks.context", "recollect.recall.recaller"),  # not where a session begins
        ("recollect.recall.recap", "recollect.documents.paths"),  # for who has no project
        ("recollect.recall.recap", "recollect.recall.question"),  # where there is an order
        ("recollect.facts", "recollect.quarantine"),  # many a pattern
        ("recollect.facts", "recollect.extraction.stated"),  # the rules, when a person is heard
        ("recollect.embedding.openai", "recollect.models.http"),
        ("recollect.embedding.openai", "recollect.embedding.local"),
        ("recollect.space", "recollect.adapters.anthropic_memory"),
        ("recollect.space", "recollect.types.pages"),
        ("recollect.space", "recollect.forgetting"),
        ("recollect.space", "recollect.recall.about"),  # brings the words of topics
        ("recollect.memory", "recollect.agents.profile"),
        ("recollect.memory", "recollect.types.access"),
        ("recollect.memory", "recollect.agents.system"),
        ("recollect.memory", "recollect.operations.archive"),
        ("recollect.memory", "recollect.operations.migrating"),
        ("recollect.documents.tree", "recollect.documents.changeset"),
        ("recollect.documents.tree", "recollect.documents.publish"),  # files, when they are wanted
        ("recollect.documents.tree", "recollect.documents.load"),
        ("recollect.documents.tree", "recollect.documents.survey"),
        ("recollect.documents.tree", "recollect.pages.filing"),  # brings the words of topics
        ("recollect.stemming", "snowballstemmer"),  # when something is searched
        ("recollect.interfaces.cli.store", "recollect.models.served"),  # brings the HTTP client
        # A hook loads as little as it can: an agent waits for it.
        ("recollect.interfaces.cli.hook", "recollect.interfaces.cli.setup"),
        ("recollect.interfaces.cli.hook", "recollect.hooks.context"),
        ("recollect.interfaces.cli.hook", "recollect.hooks.events"),
        ("recollect.interfaces.cli.hook", "recollect.hooks.process"),
        ("recollect.interfaces.cli.hook", "recollect.hooks.capturing"),
        ("recollect.interfaces.cli.hook", "recollect.hooks.installing"),
        ("recollect.interfaces.cli.serving", "<dynamic>"),  # web server and MCP SDK are extras
        ("recollect.importers.items", "<dynamic>"),  # each source when it is asked for
        ("recollect.interfaces.cli.groups", "<dynamic>"),  # each command when it is used
        ("recollect.interfaces.cli.groups", "click.shell_completion"),  # only for Tab
        ("recollect.interfaces.cli.output", "recollect.interfaces.views"),  # no help needs them
        ("recollect.interfaces.cli.output", "rich.console"),  # only for a terminal
        ("recollect.interfaces.cli.output", "rich.progress"),
        ("recollect.interfaces.cli.output", "rich.table"),
        ("recollect.interfaces.cli.output", "rich.text"),
        ("recollect.interfaces.cli.recall", "rich.cells"),
        ("recollect.interfaces.views", "msgspec"),  # an extra, only to describe what is answered
    }
)

# Supervisors: they log what they caught and state it again, or hand it to the caller whose it is.
BROAD_EXCEPTS: frozenset[str] = frozenset(
    {
        "recollect.interfaces.http.app",  # a request's error is an answer, and kept from the others
        "recollect.interfaces.web.site",  # the same, and the answer is a page
        "recollect.interfaces.mcp.server",  # the same, and the answer is a tool's
        "recollect.interfaces.cli.hook",  # an agent never fails for what its memory does
        "recollect.memory",  # a session that begins never fails for what runs in the background
        "recollect.agents.conversation",  # a host's hook never fails a turn
        "recollect.agents.runner",  # a turn's error is counted against it and kept from the others
        "recollect.agents.toolbox",  # what a tool raises is told to the model
        "recollect.worker",  # one job's error is counted against it and kept from the others
        "recollect_conformance.suite",  # a case that fails in any way is reported
        "recollect.store.sqlite.database",  # a group commit's leader hands each job its own error
    }
)

# What a user may import from recollect, and nothing else.
EXPECTED_EXPORTS: frozenset[str] = frozenset(
    {"Memory", "Space", "Session", "Settings", "open", "AgentMemories", "open_agents"}
    | {"Attachment", "Message", "Record", "Role", "ToolCall", "ToolResult"}
    | {"MarkCause", "Mode", "SessionState", "Status", "RecollectError"}
    | {"Job", "JobState", "Outcome", "Processor", "Verdict", "Work", "Worker", "WorkReport"}
    | {"Call", "Draft", "Extraction", "Fact", "FactChange", "Facts", "FactTag", "NewFact"}
    | {"Receipt", "Source", "Spent", "Trust"}
    | {"Citation", "CitationStream", "Context", "EntryKind", "Filters", "Hit", "Omission"}
    | {"without_citations", "ConsolidationState", "Generation"}
)

SKIPPED_DIRECTORIES = frozenset({"__pycache__", "build", "dist", "htmlcov", "node_modules"})
CODE_SUFFIXES = frozenset({".py", ".sql", ".toml", ".sh", ".yaml", ".yml"})


def tracked_files() -> list[Path]:
    """The files git would commit; below a directory without git, those that look like it."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listing.returncode == 0 and listing.stdout:
        paths = [ROOT / name for name in listing.stdout.split("\0") if name]
    else:
        paths = [path for path in ROOT.rglob("*") if not _is_passed_over(path)]
    return sorted(path for path in paths if path.is_file())


# What the package may be, and how much below it may lie before the number has to follow.
SIZE = {"lines": 84_522, "modules": 328, "with one importer": 74}
LOWER_BELOW = 0.97
# The coroutines are named as what they run, and mem0's verbs as mem0 names them.
NAMED_LIKE_OTHERS = frozenset({"recollect.aio", "recollect.compat.mem0"})


def _is_passed_over(path: Path) -> bool:
    directories = path.relative_to(ROOT).parts[:-1]
    hidden = any(part.startswith(".") and part != ".ci" for part in directories)
    return hidden or bool(SKIPPED_DIRECTORIES & set(directories))


def test_the_tree_under_watch_is_not_empty() -> None:
    assert "recollect" in TREE.modules
    assert "recollect_conformance" in CONFORMANCE.modules
    assert ROOT / "pyproject.toml" in tracked_files()


def test_every_module_has_its_place_in_the_layers() -> None:
    assert rules.misplaced_modules(TREE, LAYERS) == []


def test_the_script_of_others_is_the_one_that_was_released() -> None:
    script = ROOT / "src/recollect/interfaces/web/static/htmx.min.js"
    held = "71ea67185bfa8c98c39d31717c6fce5d852370fcdfd129db4543774d3145c0de"
    assert hashlib.sha256(script.read_bytes()).hexdigest() == held


def test_the_architecture_shows_these_layers() -> None:
    drawn = (ROOT / "ARCHITECTURE.md").read_text().partition("## Layers")[2].partition("src/")[0]
    block = " ".join(line.strip() for line in drawn.splitlines() if line.startswith("    "))
    shown = [frozenset(re.findall(r"\w+", layer)) for layer in block.split("←")]
    unshown = {"__init__", "__main__"}
    assert shown == [layer - unshown for layer in LAYERS if layer - unshown]


def test_imports_point_from_the_outside_in() -> None:
    assert rules.layer_violations(TREE, LAYERS) == []


def test_recollect_knows_nothing_of_its_conformance_suite() -> None:
    packages = {
        (module.name, site.target.partition(".")[0])
        for module in TREE.modules.values()
        for site in TREE.imports(module)
    }
    assert {module for module, package in packages if package == CONFORMANCE.package} == set()


@every_tree
def test_no_modules_import_each_other_in_a_circle(tree: SourceTree) -> None:
    assert rules.import_cycles(tree) == []


@every_tree
def test_imports_stand_at_the_top_of_their_module(tree: SourceTree) -> None:
    allowed = {each for each in LAZY_IMPORTS if each[0].partition(".")[0] == tree.package}
    assert rules.hidden_imports(tree, allowed) == []


@every_tree
def test_names_say_what_things_are(tree: SourceTree) -> None:
    assert rules.banned_names(tree) == []


@every_tree
def test_only_the_clock_reads_the_time(tree: SourceTree) -> None:
    allowed = {"recollect.clock", "recollect.benchmarks.figures"}
    assert rules.time_readers(tree, allowed) == []


@every_tree
def test_only_ids_makes_ids_and_random_numbers(tree: SourceTree) -> None:
    assert rules.random_makers(tree, allowed={"recollect.ids"}) == []


@every_tree
def test_only_supervisors_catch_everything(tree: SourceTree) -> None:
    assert rules.broad_excepts(tree, BROAD_EXCEPTS) == []


@every_tree
def test_every_module_says_what_it_is_responsible_for(tree: SourceTree) -> None:
    assert rules.undocumented_modules(tree) == []


@every_tree
def test_functions_stay_small(tree: SourceTree) -> None:
    assert rules.overgrown(tree) == []


def test_a_class_name_exists_once() -> None:
    assert rules.shared_class_names(TREE, NAMED_LIKE_OTHERS) == []


def test_the_package_only_gets_smaller() -> None:
    """Whoever makes it smaller lowers SIZE; whoever has to raise it says why in the commit."""
    found = rules.size(TREE)
    assert {name: found[name] for name in SIZE if found[name] > SIZE[name]} == {}
    assert {name: found[name] for name in SIZE if found[name] < SIZE[name] * LOWER_BELOW} == {}


def test_the_package_exports_exactly_the_public_names() -> None:
    assert rules.exports(TREE.modules["recollect"]) == set(EXPECTED_EXPORTS)


def test_nothing_is_left_unfinished() -> None:
    code = [path for path in tracked_files() if path.suffix in CODE_SUFFIXES or not path.suffix]
    assert rules.unfinished(code, ROOT) == []


def test_no_file_names_a_path_of_one_machine() -> None:
    assert rules.machine_paths(tracked_files(), ROOT) == []


def test_requirements_hold_versions_and_hashes_and_no_addresses() -> None:
    requirements = ROOT / "requirements.txt"
    assert rules.registry_addresses([requirements], ROOT) == []
    assert rules.unpinned_requirements(requirements.read_text(encoding="utf-8")) == []


@every_row("name", ["demo", "test", "check", "bench", "torture", "docs", "contract"])
def test_every_make_target_is_there_and_described(name: str) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert rules.undescribed_targets(f".PHONY: {name}\n{makefile}") == []
