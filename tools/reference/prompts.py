"""The reference of the prompts: each in full, with its variables and what it costs."""

from __future__ import annotations

from collections.abc import Mapping

from recollect.models.prompts import Prompt, load_prompt, shipped_prompts
from recollect.models.tokens import estimate_tokens
from tools.reference.layout import page, table

PREFACE = """\
Everything that Recollect asks of a language model is a Markdown file in the package. A file of the
same name in the directory that the setting `prompts_dir` names replaces it;
[replacing prompts](../how-to/prompts.md) says how.

`TOKENS` is what the text takes without what is put into its variables: an estimate from its bytes,
as everywhere in Recollect. Over all prompts the tokenizers of SmolLM2 and Gemma 3 counted 4 % and
8 % fewer when that was last compared, in November 2026. What is put in is bounded by the model's
window and by [settings](settings.md) such as `extract_chunk_tokens`.
"""

# What each is for, and how often it is sent.
PURPOSES: Mapping[str, str] = {
    "extract": "Distil a stretch of a session into memory and facts; with every such call.",
    "extract-task": "What a memory of work looks like; stands in `extract` in place of its form.",
    "extract-chat": "What a memory of talk looks like; stands in `extract` in place of its form.",
    "extract-lines": "The same, one fact a line: for small windows, and models without JSON.",
    "extract-request": "The session, what is known of it, and the transcript; with both of these.",
    "extract-repair": "Ask again after an answer that could not be used.",
    "memory-agent": "File what a session came to on pages; the system prompt of each turn.",
    "memory-agent-request": "The transcript that a memory-agent files.",
    "consolidation": "Write a section of MEMORY, a skill or the summary; with every part.",
    "consolidation-request": "A part: its facts and sessions, what stands, and what changed since.",
    "summarize": "Summarise the older part of a conversation that has grown too long.",
    "summarize-request": "The summary there was, and the messages that are added to it.",
    "chat": "Answer in `recollect chat` and `recollect serve --agent`; with each turn.",
    "answer": "Benchmarks: answer a question from notes alone.",
    "answer-request": "Benchmarks: the notes and the question.",
    "judge": "Benchmarks: judge an answer by its reference.",
    "judge-request": "Benchmarks: question, reference and answer.",
}


def render() -> str:
    prompts = [load_prompt(path.parent, name) for name, path in shipped_prompts().items()]
    rows = table(("prompt", "version", "tokens", "what for", "variables"), map(_row, prompts))
    return page("Prompts", PREFACE, rows, *map(_shown, prompts))


def _row(prompt: Prompt) -> tuple[str, ...]:
    if prompt.name not in PURPOSES:
        raise ValueError(f"PURPOSES in tools/reference/prompts.py lacks {prompt.name!r}")
    name = f"[`{prompt.name}.md`](#{prompt.name})"
    return name, prompt.version, _tokens(prompt), PURPOSES[prompt.name], _variables(prompt)


def _tokens(prompt: Prompt) -> str:
    return f"{estimate_tokens(prompt.text):,}"


def _variables(prompt: Prompt) -> str:
    return ", ".join(f"`{{{{{name}}}}}`" for name in prompt.variables)


def _shown(prompt: Prompt) -> str:
    """In a longer fence than any prompt has."""
    needs = f", and needs {_variables(prompt)}" if prompt.variables else ", and has no variables"
    told = f"Version {prompt.version}. It takes {_tokens(prompt)} tokens{needs}."
    return f"## {prompt.name}\n\n{PURPOSES[prompt.name]} {told}\n\n````text\n{prompt.text}\n````"
