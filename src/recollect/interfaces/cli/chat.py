"""`recollect chat`: talks to an agent that has this memory, at a terminal or through a pipe."""

from __future__ import annotations

import dataclasses
import logging
import shlex
from typing import Any

import click

import recollect
from recollect.agents.profile import AgentProfile
from recollect.agents.system import DEFAULT_KEY
from recollect.clock import SystemClock
from recollect.descriptors import Descriptor, has_own_prompt, read_descriptor
from recollect.errors import InvalidValue
from recollect.interfaces.cli.chat_ending import finish
from recollect.interfaces.cli.chat_input import Interrupts, Lines
from recollect.interfaces.cli.chat_partner import Partner, Place
from recollect.interfaces.cli.chat_talk import Ending, Talk
from recollect.interfaces.cli.chat_tools import memory_tools
from recollect.interfaces.cli.chat_voice import Voice
from recollect.interfaces.cli.completing import known_keys
from recollect.interfaces.cli.logs import logged
from recollect.interfaces.cli.output import counted, one_line
from recollect.interfaces.cli.target import Target, read_agent, with_target
from recollect.space import DEFAULT_AGENT

NO_MODEL = (
    "No model is set: answers come from memory alone. Set one with --model or RECOLLECT_MODEL, as"
    " in openai:NAME or anthropic:NAME, and its key in OPENAI_API_KEY or ANTHROPIC_API_KEY."
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What the options say, apart from where."""

    agent: Descriptor
    key: str
    model: str | None
    is_remembered: bool
    is_learning: bool
    once: str | None
    is_to_end: bool
    instructions: str
    timeout: float | None


@click.command("chat")
@click.option(
    "--agent", metavar="NAME", default=DEFAULT_AGENT, show_default=True, help="Whom to talk to."
)
@click.option(
    "--session",
    "key",
    metavar="KEY",
    shell_complete=known_keys,
    default=DEFAULT_KEY,
    show_default=True,
    help="Where.",
)
@click.option("--model", metavar="MODEL", help="Who thinks and learns. Default: the setting model.")
@click.option("--instructions", metavar="TEXT", default="", help="What the agent is told besides.")
@click.option("--no-memory", is_flag=True, help="Recall nothing and keep nothing, in any file.")
@click.option("--no-learn", is_flag=True, help="Leave the learning to a worker elsewhere.")
@click.option("--once", metavar="TEXT", help="Say this, print the answer, and stop.")
@click.option("--end/--no-end", default=None, help="End the session. Default: not with --once.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Wait no longer for an answer. Default: as long as one is on its way.",
)
@click.option("--verbose", is_flag=True, help="Log what goes on behind it.")
@with_target
def command(
    target: Target,
    /,
    agent: str,
    no_memory: bool,
    no_learn: bool,
    end: bool | None,
    verbose: bool,
    **given: Any,
) -> None:
    """Talk to an agent that has this memory: it remembers, across sessions and restarts.

    At a terminal it asks line by line, and what begins with a slash is a command: /help lists
    them. In a pipe each line is a message, and answers, and nothing else, go to standard output;
    with --json each is an object on a line. The end of input ends the session: what was said
    becomes memory, at once as far as that goes within worker_grace_seconds.

    Ctrl-C stops waiting for an answer, which may still come; twice it leaves, and the session stays
    open. Without a model the agent answers from memory alone, and says so. With one it has tools to
    search memory and to read its pages; it cannot change them.

    What is said is stored before it is answered: if the process dies, the next one answers. The
    exit code is 1 if something got no answer in a pipe or with --once.

    \b
    Examples:
      recollect chat
      recollect chat --agent coder --session project:atlas --model anthropic:claude-sonnet-4-5
      recollect chat --once "Where did I say I live?"
      recollect chat --session import --json < questions.txt
    """
    once = given["once"]
    if once is not None and not once.strip():
        raise click.UsageError("--once is empty.")
    if no_memory and target.store is not None:
        raise click.UsageError("--no-memory keeps nothing in any store; leave --store out.")
    wishes = Wishes(
        agent=_partner_agent(agent),
        is_remembered=not no_memory,
        is_learning=not no_learn,
        is_to_end=once is None if end is None else end,
        **given,
    )
    level = logging.INFO if verbose else logging.CRITICAL
    with logged(level, as_json=target.as_json), _opened(target, agent, wishes) as memory:
        is_fine = _chat(target, memory, wishes)
    if not is_fine:
        click.get_current_context().exit(1)


def _partner_agent(name: str) -> Descriptor:
    agent = read_descriptor(read_agent(name) or "")
    if has_own_prompt(agent):
        raise InvalidValue(f"{name!r} works on memory, and talks to nobody")
    return agent


def _opened(target: Target, agent: str, wishes: Wishes) -> recollect.Memory:
    if wishes.is_remembered:
        return target.open(agent, model=wishes.model)
    settings = dataclasses.replace(
        target.settings(model=wishes.model),
        store=None,
        sqlite_path=None,
        data_dir="",
        database="global",
    )
    return recollect.open(settings=settings)


def _chat(target: Target, memory: recollect.Memory, wishes: Wishes) -> bool:
    """Whether everything that was said got its answer, as far as somebody has to know."""
    lines = Lines()
    is_terminal = lines.is_terminal and wishes.once is None
    voice = Voice(as_json=target.as_json, is_terminal=is_terminal, where=target.arguments)
    if memory.runtime.models.main() is None:
        voice.note(NO_MODEL)
    if is_terminal:
        who, where = one_line(wishes.agent.id), one_line(wishes.key)
        voice.note(f"Talking to {who} in session {where}. /help lists what else there is.")
    with Interrupts() as interrupts:
        talk = Talk(
            partner=_partner(target, memory, wishes),
            voice=voice,
            interrupts=interrupts,
            lines=lines,
            clock=SystemClock(),
            timeout=wishes.timeout,
        )
        ending = _talked(talk, wishes)
        finish(talk, ending, is_to_end=wishes.is_to_end, is_learning=wishes.is_learning)
        if ending is Ending.LEFT:
            return is_terminal and not interrupts.is_told_to_leave
        return is_terminal or not talk.failed


def _talked(talk: Talk, wishes: Wishes) -> Ending:
    system, place = talk.partner.system, talk.partner.place
    if wishes.once is None:
        before = place.state
        if before is not None and before.queued:
            waits = counted(before.queued, "message")
            history = f"recollect history{talk.voice.where} {shlex.quote(one_line(place.key))}"
            talk.voice.note(
                f"{waits} from before without an answer. The agent sees to that first; what it says"
                f" is in {history}"
            )
        system.start(learn=place.is_remembered and wishes.is_learning)
        return talk.run()
    system.start(learn=False)
    talk.say(wishes.once)
    return Ending.LEFT if talk.interrupts.is_any else Ending.ENDED


def _partner(target: Target, memory: recollect.Memory, wishes: Wishes) -> Partner:
    agent = wishes.agent
    place = Place(
        memory=memory,
        agent=agent,
        space_name=target.space_name,
        key=wishes.key,
        is_remembered=wishes.is_remembered and memory.settings.is_memory_enabled(agent.id),
    )
    tools = memory_tools(place.recalled, place.space.documents, agent.id)
    profile = AgentProfile(
        instructions=wishes.instructions, tools=tools if place.is_remembered else ()
    )
    # Others may share the store: what is for their agents is not answered here.
    return Partner(place=place, system=memory.agents({agent: profile}, only=True))
