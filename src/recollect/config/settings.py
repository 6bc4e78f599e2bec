"""Every setting as one table: its type, its default, what it does, its bounds or choices."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints
from urllib.parse import quote

from recollect.errors import InvalidSetting

if TYPE_CHECKING:
    from recollect.types.agents import LifePolicy
    from recollect.types.generations import SelectionPolicy
    from recollect.types.records import LeasePolicy, MarkPolicy, Pause, Unattended


def setting(
    default: Any,
    doc: str,
    bounds: tuple[float | None, float | None] = (None, None),
    *,
    choices: tuple[str, ...] | None = None,
) -> Any:
    """A field of the settings, with what the reference tells of it."""
    metadata = {"doc": doc, "minimum": bounds[0], "maximum": bounds[1], "choices": choices}
    if callable(default):
        return field(default_factory=default, metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """One setting as the reference shows it."""

    name: str
    type: type
    default: Any
    doc: str
    minimum: float | None
    maximum: float | None
    choices: tuple[str, ...] | None

    @property
    def environment_name(self) -> str:
        return f"RECOLLECT_{self.name.upper()}"


def checked(described: Described, given: Any) -> Any:
    """A value of the right type and within its bounds, or InvalidSetting."""
    value = given
    if described.default is None and (value is None or value == ""):
        return None  # an empty variable is how a shell says that there is none
    if described.type is float and type(value) is int and abs(value) < 2**53:
        value = float(value)
    if isinstance(value, Path) and described.type is str:
        value = str(value)
    is_right_type = type(value) is described.type  # a bool is no int here
    if not is_right_type:
        raise InvalidSetting(f"{described.name} is {described.type.__name__}, not {value!r}")
    if described.choices is not None and value not in described.choices:
        raise InvalidSetting(
            f"{described.name} is one of {', '.join(described.choices)}: {value!r}"
        )
    low, high = described.minimum, described.maximum
    if low is not None and high is not None and not low <= value <= high:  # NaN is outside too
        raise InvalidSetting(f"{described.name} must be between {low:,} and {high:,}: {value!r}")
    return value


DEFAULT_SPACE = "default"  # where nobody names one
FOLDER_BYTES_MAX = 200  # file systems stop at 255
_BY_AGENT = frozenset({"agents", "agent_data_dirs", "origins"})  # they have no one value


def _user_data_dir() -> str:
    import platformdirs  # asked for when settings are made, not when Recollect is imported

    return platformdirs.user_data_dir("recollect")


@cache
def _mark_policy(threshold: int, unit: str) -> MarkPolicy:
    from recollect.types.records import MarkPolicy, MarkUnit

    return MarkPolicy(threshold=threshold, unit=MarkUnit(unit))


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Every setting of Recollect, checked. `load` fills it from its sources."""

    store: str | None = setting(
        None,
        "Store to open when none is given: a path, `sqlite:///…`, `postgresql://…`, `:memory:`.",
    )
    data_dir: str = setting(
        _user_data_dir,
        "The directory of databases without their own path. Empty: memory is off, without files.",
    )
    database: str = setting(
        "global",
        "One database for all agents, or one each in `{data_dir}/agents/<name>/memory.db`.",
        choices=("global", "per-agent"),
    )
    sqlite_path: str | None = setting(None, "The database file; default `{data_dir}/memory.db`.")
    sqlite_wal: bool = setting(True, "Write-ahead log: readers do not wait for writers.")
    sqlite_busy_timeout_ms: int = setting(
        5000, "How long to wait for another process's lock before StoreBusy.", (0, 600_000)
    )
    postgres_schema: str = setting(
        "recollect", "The PostgreSQL schema that holds the tables; `?schema=` in the URL wins."
    )
    postgres_pool_max: int = setting(8, "Connections to PostgreSQL per process.", (1, 200))
    postgres_timeout_seconds: float = setting(
        10.0, "How long to wait for a connection to PostgreSQL.", (0.1, 600)
    )
    mark_threshold: int = setting(
        5, "More unprocessed records (or completed turns) than this mark a session.", (0, 100_000)
    )
    mark_unit: str = setting("records", "What the threshold counts.", choices=("records", "turns"))
    idle_sweep_seconds: float = setting(
        600.0,
        "Sessions with unprocessed records and no activity for this long are marked by the sweep,"
        " within scan_age_days_max and from scan_sources.",
        (1, 31_536_000),
    )
    idle_sweep_every_seconds: float = setting(60.0, "How often a worker sweeps.", (0.1, 86_400))
    worker_tick_seconds: float = setting(
        30.0, "How often a worker looks for due jobs by itself.", (0.01, 3600)
    )
    worker_batch: int = setting(10, "The most jobs one tick of a worker claims.", (1, 1000))
    worker_concurrency: int = setting(8, "Jobs a worker processes at the same time.", (1, 256))
    worker_running_max: int = setting(
        64,
        "Jobs that run at the same time in the whole store. Workers that claim at the same moment"
        " may exceed it by their number.",
        (1, 100_000),
    )
    worker_space_running_max: int = setting(
        0,
        "Jobs of one space that run at the same time, over all workers; exact. 0: only "
        "worker_running_max limits them.",
        (0, 100_000),
    )
    worker_turns: str = setting(
        "spaces",
        "Which job is next: spaces take turns, each with what was marked first in it; or what "
        "was marked first in the whole store.",
        choices=("spaces", "first-come"),
    )
    worker_wake: bool = setting(
        True, "Look at once when new work is announced, by this process or by PostgreSQL."
    )
    worker_grace_seconds: float = setting(
        10.0, "How long a worker that is told to stop lets jobs finish.", (0, 3600)
    )
    lease_seconds: float = setting(
        60.0,
        "How long a claim lives without being renewed; it is renewed three times as often.",
        (0.1, 3600),
    )
    job_failures_max: int = setting(5, "Failures after which a job is parked.", (1, 1000))
    job_takeovers_max: int = setting(
        20, "Takeovers without progress after which a job is parked.", (1, 1000)
    )
    backoff_seconds: float = setting(
        60.0,
        "The bound of the first backoff; it doubles with each failure, with full jitter.",
        (0, 86_400),
    )
    backoff_seconds_max: float = setting(3600.0, "The highest bound of a backoff.", (0, 604_800))
    scan_sessions_max: int = setting(16, "The most sessions a start-up scan marks.", (1, 10_000))
    scan_rows_max: int = setting(
        5000, "The most sessions a start-up scan looks at.", (1, 1_000_000)
    )
    scan_age_days_max: float = setting(
        30.0,
        "Sessions without activity for longer are neither scanned nor swept: a mark, or work "
        "--all, has them learned from.",
        (0, 36_500),
    )
    scan_idle_seconds: float = setting(
        21_600.0, "Sessions active more recently are not scanned.", (0, 31_536_000)
    )
    scan_sources: str = setting(
        "", "Sources that a start-up scan and the idle sweep take, separated by commas; empty: any."
    )
    scan_every_seconds: float = setting(
        86_400.0, "How long after a scan the next one is due by itself.", (1, 31_536_000)
    )
    extractor: str = setting(
        "auto",
        "What distils sessions: a model, the rules that need none, or nothing. auto: the model "
        "where one is set, else the rules.",
        choices=("auto", "model", "rules", "none"),
    )
    extract_whole_session: bool = setting(
        False, "Read a session from its first record every time, not only what is new."
    )
    extract_chunk_tokens: int = setting(
        24_000,
        "The longest stretch of a session sent to a model at once; its window may set less.",
        (500, 2_000_000),
    )
    extract_known_facts: int = setting(
        20, "Facts shown to a model that new records may contradict.", (0, 500)
    )
    extract_repairs: int = setting(
        1,
        "Times a model is told what is wrong with its answer. After the last it is asked once for "
        "plain lines instead of JSON, if model_structured leaves that open. 0: neither.",
        (0, 10),
    )
    extract_pause_seconds: float = setting(
        300.0,
        "Where a model is paid for, a session that is going on is distilled when nothing was said "
        "for this long. What is asked for (sleep, end, reset, compaction, an import, `invalidate`,"
        " `work --all`) does not wait, nor do rules. 0: nothing waits.",
        (0, 86_400),
    )
    extract_pause_records: int = setting(
        60,
        "A session with so many unprocessed records waits for no pause; looked at whenever a pause"
        " might have ended.",
        (1, 100_000),
    )
    extract_on_session_start: str = setting(
        "wake",
        "When a person's session begins: wake the running worker, start one in this process, or "
        "do neither.",
        choices=("wake", "worker", "off"),
    )
    prompts_dir: str | None = setting(
        None, "A directory whose files replace the prompts of the same name."
    )
    model: str | None = setting(
        None,
        "The language model: a name, or `openai:<name>`, `anthropic:<name>`; on this machine "
        "`ollama/<name>`, `lmstudio/<name>`, `llamacpp`, or the URL of any server that is "
        "compatible with OpenAI's, `#<name>` behind it where it has several (`recollect models` "
        "lists them). It distils sessions, files pages, writes the handbook and answers for "
        "agents, and each of these is paid for; `extractor`, `memory_agent_model` and "
        "`consolidation_model` switch the first three to `rules`. The key is taken from "
        "`OPENAI_API_KEY` or `ANTHROPIC_API_KEY`; a model on this machine needs none.",
    )
    model_base_url: str | None = setting(
        None,
        "Where the model is served. Default: what the provider's variable says (`OPENAI_BASE_URL`, "
        "`ANTHROPIC_BASE_URL`, `OLLAMA_HOST`, `LMSTUDIO_BASE_URL`, `LLAMA_ARG_HOST` and "
        "`LLAMA_ARG_PORT`), else its own address.",
    )
    model_structured: str = setting(
        "auto",
        "How the format of answers is enforced: by a JSON schema, as JSON, as plain lines. auto: "
        "by a schema, or as JSON where the server takes none; in plain lines where a window is "
        "small, and where answers in JSON cannot be read.",
        choices=("auto", "schema", "json", "lines"),
    )
    model_window_tokens: int = setting(
        0,
        "Tokens that a prompt and its answer may have. 0: what the model's server says; where it "
        "says nothing 128,000, or 8,192 of a server on this machine or in its network.",
        (0, 10_000_000),
    )
    model_output_tokens_max: int = setting(4096, "Tokens that an answer may have.", (64, 1_000_000))
    model_answer_bytes_max: int = setting(
        4_194_304, "Bytes of an answer that are read.", (1024, 1_073_741_824)
    )
    model_timeout_seconds: float = setting(120.0, "How long one answer may take.", (0.1, 3600))
    model_retries: int = setting(
        2, "Times a call is repeated at once after a passing error.", (0, 20)
    )
    model_concurrency: int = setting(
        8, "Calls to the model at the same time, in one process.", (1, 256)
    )
    model_pause_seconds: float = setting(
        300.0, "How long all calls wait after the key was refused.", (1, 86_400)
    )
    model_input_price: float = setting(
        0.0, "Price of a million tokens sent, in your currency. 0: unknown.", (0, 1e6)
    )
    model_output_price: float = setting(
        0.0, "Price of a million tokens answered. 0: unknown.", (0, 1e6)
    )
    embedder: str = setting(
        "none",
        "What makes vectors for recall: none, local (the extra `embed`), openai:<model>, or a "
        "model on this machine: ollama/<model>, lmstudio/<model>, llamacpp/<model>.",
    )
    embedder_base_url: str | None = setting(
        None, "Where embeddings are served; default `OPENAI_BASE_URL`, else the provider's own."
    )
    embedder_dimensions: int = setting(
        0, "Numbers in a vector, where a provider can be asked. 0: its own.", (0, 8192)
    )
    embedder_batch: int = setting(64, "Texts in one request for vectors.", (1, 2048))
    embedder_text_bytes_max: int = setting(
        8000, "Bytes of a text that are embedded.", (16, 1_000_000)
    )
    embedder_timeout_seconds: float = setting(
        30.0, "How long a batch of vectors may take.", (0.1, 600)
    )
    embedder_question_seconds: float = setting(
        2.0,
        "How long recall waits for a question's vector before it goes by words alone.",
        (0.05, 600),
    )
    embed_every_seconds: float = setting(
        5.0, "How often a worker looks for what has no vector yet.", (0.1, 86_400)
    )
    vectors_bytes_max: int = setting(
        1_073_741_824, "Memory for the vectors of the spaces used last.", (1_048_576, 2**50)
    )
    spend_tokens_per_day: int = setting(
        5_000_000, "Tokens a space may use in a day (UTC).", (0, 10**15)
    )
    spend_calls_per_day: int = setting(
        5000, "Model calls a space may make in a day (UTC).", (0, 10**9)
    )
    spend_tokens_per_run: int = setting(
        20_000_000,
        "Tokens one worker may use in a run; one that runs on, in a day (UTC).",
        (0, 10**15),
    )
    spend_calls_per_run: int = setting(
        20_000,
        "Model calls one worker may make in a run; one that runs on, in a day (UTC).",
        (0, 10**9),
    )
    audit: str = setting(
        "off",
        "What the audit log records of who did what, without content: nothing, changes, or "
        "changes and reads.",
        choices=("off", "writes", "all"),
    )
    audit_days: float = setting(365.0, "Days that the audit log is kept.", (0.01, 36_500))
    metrics: bool = setting(
        False, "Count and time every verb of the store in this process; `recollect serve` does."
    )
    traces: bool = setting(
        False, "Spans for verbs, model calls and jobs, through OpenTelemetry (the extra `otel`)."
    )
    redaction_rules: str | None = setting(
        None, "A TOML file with rules of your own for what is secret."
    )
    redaction_allow: str = setting(
        "", "Values that are not secret whatever they look like, separated by commas."
    )
    redact_on_append: bool = setting(
        False,
        "Redact records, given summaries and reasons before they are stored; what was redacted is"
        " gone.",
    )
    usage_days: float = setting(
        90.0,
        "Days that each single use of what was recalled is kept, to count it once. Counts stay.",
        (1, 36_500),
    )
    contexts_kept: int = setting(
        2000,
        "Of a space, how many of the blocks that were told are kept by reference, the newest: for"
        " `why`, `replay` and who was told. 0: none.",
        (0, 1_000_000),
    )
    contexts_days: float = setting(
        90.0, "Days that a block that was told is kept by reference.", (0.01, 36_500)
    )
    fact_chars_max: int = setting(2000, "The longest fact.", (50, 100_000))
    memory_chars_max: int = setting(
        200_000,
        "The longest memory of a session (raw_memory), in characters; of its summary at most "
        "40,000 are kept. What is full stays as it is: nothing more is added to it.",
        (500, 4_000_000),
    )
    document_bytes_max: int = setting(
        262_144, "The largest body of a document, as UTF-8.", (1024, 1_048_576)
    )
    documents_max: int = setting(
        1_000_000, "The most documents a space may have.", (1, 100_000_000)
    )
    document_versions_kept: int = setting(
        100,
        "Versions that are kept of a page that people or agents write, beside a person's last one.",
        (1, 1_000_000),
    )
    record_bytes_max: int = setting(
        1_048_576,
        "The largest record, as UTF-8 or JSON; also the largest summary.",
        (1024, 67_108_864),
    )
    batch_records_max: int = setting(
        1000, "The most records one `append_many` takes.", (1, 100_000)
    )
    retain_recent: int = setting(20, "Records a compaction keeps for the new session.", (0, 10_000))
    max_history_len: int = setting(
        100,
        "Records of its history that an agent is shown; all that is kept while memory is off.",
        (1, 100_000),
    )
    pipeline: str = setting(
        "both",
        "What a session goes through: extraction, its agent's memory-agent, both, or none.",
        choices=("extraction", "memory-agent", "both", "none"),
    )
    review: str = setting(
        "off",
        "What of all that is learned waits for a person's yes before anybody is told: all,"
        " instructions, or nothing. While it waits no model writes pages from what was said.",
        choices=("all", "instructions", "off"),
    )
    memory_agent_model: str | None = setting(
        None,
        "The model that memory-agents file pages with. None: the one that `model` names. `rules`:"
        " no model, pages are rendered from facts.",
    )
    agent_idle_seconds: float = setting(
        60.0, "An agent that gets no message for this long falls asleep.", (0.01, 31_536_000)
    )
    agent_poison_pill_seconds: float = setting(
        3600.0, "An agent that has been asleep for this long is dead.", (0.01, 31_536_000)
    )
    agent_immortal_types: str = setting(
        "user", "The types of agents that never die, however long they sleep, separated by commas."
    )
    agent_concurrency: int = setting(8, "Agents that one process runs at the same time.", (1, 256))
    agent_turns_max: int = setting(20, "Times a model is asked in one run of an agent.", (1, 1000))
    agent_tokens_max: int = setting(400_000, "Tokens one run of an agent may use.", (1000, 10**9))
    agent_seconds_max: float = setting(
        600.0, "How long one run of an agent may take.", (0.1, 86_400)
    )
    agent_tool_bytes_max: int = setting(
        1_048_576, "What tools may answer in one run of an agent.", (1024, 2**30)
    )
    agent_memory_tokens: int = setting(
        2000, "Tokens of recalled memory before each turn; 0: none.", (0, 1_000_000)
    )
    recap_tokens: int = setting(
        800,
        "Tokens of the recap that a session begins with, where no other budget is given; 0: none.",
        (0, 1_000_000),
    )
    signals_every_seconds: float = setting(
        30.0, "How often a worker looks for delayed signals.", (0.01, 3600)
    )
    compaction_threshold: int = setting(40, "More messages than this are compacted.", (2, 100_000))
    emergency_retain: int = setting(
        5, "Messages kept where nothing else fits a model's window.", (1, 1000)
    )
    reply_tokens: int = setting(
        1024, "Tokens of a model's window kept free for its reply.", (16, 1_000_000)
    )
    summary_tokens_max: int = setting(
        1200, "The longest summary of a compacted conversation.", (50, 100_000)
    )
    consolidation: str = setting(
        "on", "Whether workers consolidate what was learned.", choices=("on", "off")
    )
    consolidation_model: str | None = setting(
        None,
        "The model that writes the handbook of a space. None: the one that `model` names. "
        "`rules`: no model, it is written by rules.",
    )
    max_unused_days: int = setting(
        30,
        "A memory not used for this long is left out of the next generation.",
        (1, 36_500),
    )
    consolidation_top_n: int = setting(
        256, "The most memories a generation is made of.", (1, 100_000)
    )
    consolidation_clock: str = setting(
        "generated_at",
        "The age of a memory that was never used counts from when it was made, or from the last "
        "message of its session.",
        choices=("generated_at", "source_updated_at"),
    )
    consolidation_facts_max: int = setting(
        1000, "The most facts a handbook is made of, the most used first.", (1, 20_000)
    )
    consolidation_checks: str | None = setting(
        None,
        "A file of cases, as `recollect check` takes: what a model wrote is not published if it"
        " breaks one that holds without it; rules write that generation.",
    )
    consolidation_cooldown_seconds: float = setting(
        1800.0,
        "How long after a generation a worker waits before it makes the next. `work`, "
        "`consolidate --now`, forgetting, corrections and changes of mode do not wait.",
        (0, 31_536_000),
    )
    consolidation_patience_seconds: float = setting(
        3600.0,
        "How long consolidation waits for a space in which there is always something to distil.",
        (0, 31_536_000),
    )
    generations_kept: int = setting(
        20, "Generations that can be restored; older ones are erased.", (1, 10_000)
    )
    memories_root: str | None = setting(
        None,
        "The directory below which each space is published as files. None: `memories` beside "
        "`memory.db`, `<name>-memories` beside any other SQLite file; nowhere for PostgreSQL. "
        "`none`: nowhere.",
    )
    extraction_retention_days: float = setting(
        365.0,
        "The summary and memory of a session are dropped when no generation has them and they "
        "were not used for this long; its facts and records stay.",
        (1, 36_500),
    )
    polluting_tools: str = setting(
        "",
        "Tools that bring in text from outside, separated by commas, `*` for any part of a "
        "name: `web_*, mcp__*`. A session that calls one is polluted from then on: nothing is "
        "learned from it, and the next generation is made without it.",
    )
    agents: Mapping[str, bool] = field(
        default_factory=dict,
        metadata={"doc": "Whether memory is on, by agent: `agents.<name>.memory.enabled`."},
    )
    agent_data_dirs: Mapping[str, str] = field(
        default_factory=dict,
        metadata={
            "doc": "The directory of an agent's database, by agent: `agents.<name>.data_dir`."
        },
    )
    origins: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        for each in described():
            object.__setattr__(self, each.name, checked(each, getattr(self, each.name)))
        if not isinstance(self.agents, Mapping):
            raise InvalidSetting(f"agents is a switch by name, not {self.agents!r}")
        for name, enabled in self.agents.items():
            if not isinstance(name, str):
                raise InvalidSetting(f"an agent has a name in text, not {name!r}: quote it")
            if not isinstance(enabled, bool):
                raise InvalidSetting(f"agents.{name}.memory.enabled is true or false: {enabled!r}")
        for name, directory in self.agent_data_dirs.items():
            if not isinstance(directory, str):
                raise InvalidSetting(f"agents.{name}.data_dir is a directory: {directory!r}")

    @property
    def selection_policy(self) -> SelectionPolicy:
        from recollect.types.generations import SelectionClock, SelectionPolicy  # where it is done

        return SelectionPolicy(
            top_n=self.consolidation_top_n,
            max_unused_days=self.max_unused_days,
            clock=SelectionClock(self.consolidation_clock),
        )

    @property
    def mark_policy(self) -> MarkPolicy:
        return _mark_policy(self.mark_threshold, self.mark_unit)

    @property
    def lease_policy(self) -> LeasePolicy:
        from recollect.types.records import LeasePolicy  # and the next: many a process needs none

        return LeasePolicy(
            lease_seconds=self.lease_seconds,
            failures_max=self.job_failures_max,
            takeovers_max=self.job_takeovers_max,
            backoff_seconds=self.backoff_seconds,
            backoff_seconds_max=self.backoff_seconds_max,
            running_max=self.worker_running_max,
            space_running_max=self.worker_space_running_max or None,
            takes_turns=self.worker_turns == "spaces",
            patience_seconds=self.consolidation_patience_seconds,
            review=self.review,
        )

    @property
    def pause(self) -> Pause:
        from recollect.types.records import Pause

        return Pause(seconds=self.extract_pause_seconds, records=self.extract_pause_records)

    def unattended(self, now: datetime, idle_seconds: float | None) -> Unattended:
        """Which unmarked sessions the scan and the sweep take: idle for so long, or ever."""
        from recollect.types.records import Unattended

        never = datetime.max.replace(tzinfo=UTC)
        return Unattended(
            oldest=now - timedelta(days=self.scan_age_days_max),
            newest=never if idle_seconds is None else now - timedelta(seconds=idle_seconds),
            sources=tuple(_listed(self.scan_sources)),
        )

    @property
    def life_policy(self) -> LifePolicy:
        from recollect.types.agents import LifePolicy  # the words of agents, where there are any

        return LifePolicy(
            idle_seconds=self.agent_idle_seconds,
            poison_pill_seconds=self.agent_poison_pill_seconds,
            immortal_types=frozenset(_listed(self.agent_immortal_types)),
        )

    def is_memory_enabled(self, agent_name: str) -> bool:
        return self.agents.get(agent_name, True)

    def path(self, agent_name: str | None = None) -> Path:
        """The database file: the global one, or an agent's own."""
        given = self.sqlite_path or "{data_dir}/memory.db"
        if agent_name is not None:
            folder = f"{{data_dir}}/agents/{folder_of(agent_name)}"
            given = f"{self.agent_data_dirs.get(agent_name, folder)}/memory.db"
        return Path(given.replace("{data_dir}", self.data_dir)).expanduser()

    def agent_path(self, agent_name: str) -> Path | None:
        """The file of an agent's own database; none where it has no directory for it."""
        is_kept = self.agent_data_dirs.get(agent_name, self.data_dir) != ""
        return self.path(agent_name) if is_kept else None


def _listed(text: str) -> Iterator[str]:
    """What stands between commas."""
    return (part for each in text.split(",") if (part := each.strip()))


def folder_of(name: str) -> str:
    """A name of an agent or a space as that of a directory; it is never a path."""
    folder = quote(name, safe="").replace(".", "%2E")
    if len(folder) > FOLDER_BYTES_MAX:
        digest = sha256(name.encode()).hexdigest()[:16]
        folder = f"{folder[: FOLDER_BYTES_MAX - 17]}-{digest}"
    return folder


def described() -> Iterator[Described]:
    """The settings that have one value each, in the order of the reference."""
    hints = _hints()
    for each in dataclasses.fields(Settings):
        if each.name not in _BY_AGENT:
            kind = hints[each.name]
            yield Described(
                name=each.name,
                type=str if kind == str | None else kind,
                default=_default(each),
                **each.metadata,
            )


@cache
def _hints() -> dict[str, Any]:
    return get_type_hints(Settings)


def _default(setting: dataclasses.Field[Any]) -> Any:
    factory = setting.default_factory
    return setting.default if factory is dataclasses.MISSING else factory()
