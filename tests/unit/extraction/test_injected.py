"""X4: what a host or Recollect put into a conversation is not taken for something that was said."""

from __future__ import annotations

import pytest

from recollect.extraction.injected import (
    as_note,
    is_own_tool,
    names_boot_file,
    without_instructions,
)
from recollect.quoting import FENCE, HEADING, without_recalled
from tests.tables import every_row

FENCED = f"<{FENCE}>\n- The user likes tea.\n</{FENCE}>"
BOOT = "Always run the linter. " * 30


@every_row(
    ("text", "rest"),
    [
        (f"{FENCED}\nHello", "\nHello"),
        (f"Hello\n{FENCED}", "Hello\n"),
        (f"Context: {FENCED} Hello", "Context:  Hello"),
        (f"{FENCED} and {FENCED}", " and "),
        (FENCED.upper(), ""),
        (f'<{FENCE} version="1">\nx\n</{FENCE} >', ""),
        (f"before\n<{FENCE}>\ncut off by the ho", "before\n"),
        (f"<{FENCE}>a <{FENCE}>b</{FENCE}> c</{FENCE}>d", "d"),
        (f"a</{FENCE}>b", "ab"),
        (f"{HEADING}\n\n- one\n- two\n\nHello", "\n\nHello"),
        (f"Hello\n{HEADING}\n- one", "Hello\n"),
        (f"{HEADING}\n\n- one\n\n- my own list", "\n\n- my own list"),
        (f"  {HEADING.lower()}  \n\n- one", ""),
    ],
)
def test_recalled_memory_is_taken_out(text: str, rest: str) -> None:
    assert without_recalled(text) == rest


@pytest.mark.parametrize(
    "text",
    [
        "What does <recollect-memory> mean in the prompt?",
        "The relevant memory of that day is a good one.",
        "### Relevant Memory Management\n\n- pages",
        "Is there a section ## Relevant Memory in it?",
    ],
)
def test_whoever_writes_about_memory_is_heard(text: str) -> None:
    assert without_recalled(text) == text


@every_row(
    ("text", "rest"),
    [
        ("<system-reminder>\nBe brief.\n</system-reminder>\nHello", "\nHello"),
        ("Hello\n<system_reminder>x</system_reminder>", "Hello\n"),
        ("<user_instructions>\nx\n</user_instructions>", ""),
        ("<environment_context>\n<cwd>/srv</cwd>\n</environment_context>", ""),
        ("<environment_details>x</environment_details>Hello", "Hello"),
        ('<skill name="pdf">\nHow to read PDF\n</skill>\nHello', "\nHello"),
        ("<available_skills>x</available_skills>", ""),
        ("<skill>a <skill>b</skill>Hello", "Hello"),
        (f"# AGENTS.md instructions for /srv\n\n<INSTRUCTIONS>\n{BOOT}\n</INSTRUCTIONS>", ""),
        (f"# AGENTS.md\n<INSTRUCTIONS>{BOOT}</INSTRUCTIONS>\n\nHello", "Hello"),
        (f"# CLAUDE.md\n\n{BOOT}", ""),
        (f"## copilot-instructions.md\n\n{BOOT}", ""),
        (f"<INSTRUCTIONS>\n{BOOT}\n</INSTRUCTIONS>", ""),
        (f"Contents of /srv/CLAUDE.md:\n\n{BOOT}", ""),
        (f"Base directory for this skill: /srv/pdf\n\n{BOOT}", ""),
        ("This session is being continued from a previous conversation. The user wants tea.", ""),
        ("<local-command-stdout>x</local-command-stdout>\nHello", "\nHello"),
        ("<ide_selection>x</ide_selection>Hello", "Hello"),
        ("<session-start-hook>x</session-start-hook>Hello", "Hello"),
    ],
)
def test_instructions_and_boot_files_are_taken_out(text: str, rest: str) -> None:
    assert without_instructions(text) == rest


@every_row(
    "text",
    [
        "What is a <system-reminder> for?",
        "<system-reminder> is a tag I never close",
        "I wrote `<skill>` and `</skill>` in one line",
        "# CLAUDE.md\nPlease add that we use pytest.",
        "<instructions>Summarise this for Alice.</instructions>",
        "Issue #12 is fixed",
        "a < b and c > d",
    ],
)
def test_whoever_writes_about_instructions_is_heard(text: str) -> None:
    assert without_instructions(text) == text


@every_row(
    ("text", "note"),
    [
        ("<system_message>wake up</system_message>", "System message\n\nwake up"),
        (
            "<system_message_silent>x</system_message_silent>",
            "Silent system message\n\nx",
        ),
        (
            ' <system_message origin="cron:1">x</system_message> ',
            "System message (origin: cron:1)\n\nx",
        ),
        ("<system_message origin=''>x</system_message>", "System message\n\nx"),
        ("<SYSTEM_MESSAGE></SYSTEM_MESSAGE>", "System message"),
        ("<system_message><a> <b></system_message>", "System message\n\n<a>\n<b>"),
        (
            "<subagent_notification>done</subagent_notification>",
            "<subagent_notification>done</subagent_notification>",
        ),
    ],
)
def test_a_message_that_is_one_envelope_is_a_note(text: str, note: str) -> None:
    """A6: as document 000 words it."""
    assert as_note(text) == note


@pytest.mark.parametrize(
    "text",
    [
        "hello",
        "<system_message>x</system_message> and what I say",
        "look: <system_message>x</system_message>",
        "<system_message>x</system_message_silent>",
        "<system_message>never closed",
    ],
)
def test_a_message_with_anything_beside_an_envelope_is_none(text: str) -> None:
    assert as_note(text) is None


@every_row(
    "name",
    [
        "recollect",
        "recollect_search",
        "mcp__recollect__recall",
        "mcp__plugin_recollect_x__get",
        "mcp__openmemory__search",
        "memory_search",
        "read_graph",
    ],
)
def test_own_tools_are_known_by_their_names(name: str) -> None:
    assert is_own_tool(name)


@pytest.mark.parametrize("name", ["search", "recollection", "prerecollect", "memory_profiler", ""])
def test_other_tools_are_not_own(name: str) -> None:
    assert not is_own_tool(name)


def test_calls_about_boot_files_are_known_by_their_arguments() -> None:
    assert names_boot_file('{"path": "/srv/AGENTS.md"}')
    assert names_boot_file("cat .cursorrules")
    assert names_boot_file('{"path": "/srv/ana/.agent/memory/MEMORY.md"}')
    assert names_boot_file('{"path": ".cursor/rules/style.mdc"}')
    assert not names_boot_file('{"path": "/srv/README.md"}')
    assert not names_boot_file('{"path": "/srv/MYAGENTS.md"}')


@every_row("shape", ["<{}>", "\n<{}", "</{}>", "<{}>\n</{}>", " <", "## relevant memory\n"])
def test_the_time_it_takes_grows_with_the_text_and_no_faster(shape: str) -> None:
    """P8: the texts are megabytes of whatever somebody wrote. Quadratic would take minutes."""
    for tag in (FENCE, "skill", "system_message", "INSTRUCTIONS"):
        text = shape.format(tag, tag) * 50_000
        without_recalled(text)
        without_instructions(text)
        as_note(text)
