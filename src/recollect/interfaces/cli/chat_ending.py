"""How a chat ends: what runs may finish, the session is marked, and is learned from in time."""

from __future__ import annotations

import threading

from recollect.errors import RecollectError
from recollect.interfaces.cli.chat_input import Interrupts
from recollect.interfaces.cli.chat_partner import Place
from recollect.interfaces.cli.chat_talk import Ending, Talk
from recollect.interfaces.cli.chat_voice import Voice
from recollect.interfaces.cli.output import counted
from recollect.session import LIST_MAX

STEP_SECONDS = 0.1


def finish(talk: Talk, ending: Ending, *, is_to_end: bool, is_learning: bool) -> None:
    """Stop the agent; then, if so wished, end the session and learn from it."""
    place, voice = talk.partner.place, talk.voice
    if ending is Ending.LEFT:
        _leave(talk)
        return
    talk.partner.system.stop()
    talk.show_late()
    if talk.unanswered:
        waits = counted(talk.unanswered, "message")
        voice.note(
            f"{waits} not answered yet: the session stays open, and goes on with the next"
            f" recollect chat{voice.where}"
        )
        return
    if not is_to_end:
        return
    try:
        ended = place.end()
        if ended is None:
            return
        if not place.is_remembered:
            voice.note("The session has ended, and nothing of it is kept.")
            return
        is_learned = is_learning and _learned(talk.interrupts, place, ended.id)
        voice.note(_in_words(place, voice, ended.id, is_learned=is_learned))
    except RecollectError as error:
        talk.failed += 1
        voice.error(error)


def _leave(talk: Talk) -> None:
    voice = talk.voice
    if talk.unanswered:
        grace = talk.partner.place.memory.settings.worker_grace_seconds
        voice.note(f"Leaving, within {grace:g} s; Ctrl-C once more ends it at once.")
    talk.interrupts.let_the_next_one_end_it()
    talk.partner.system.stop()
    talk.show_late()
    voice.note("The session stays open.")


def _learned(interrupts: Interrupts, place: Place, session_id: str) -> bool:
    """Whether all of a session was learned from in the time there is. Ctrl-C skips it."""
    interrupts.count = 0
    worker = place.memory.worker()
    worker.start()
    pause = threading.Event()
    try:
        for _ in range(round(place.memory.settings.worker_grace_seconds / STEP_SECONDS)):
            if place.is_learned(session_id):
                return True
            if interrupts.is_any:
                break
            pause.wait(STEP_SECONDS)
        return place.is_learned(session_id)
    finally:
        worker.stop(0 if interrupts.is_any else None)


def _in_words(place: Place, voice: Voice, session_id: str, *, is_learned: bool) -> str:
    if not is_learned:
        return (
            "The session has ended. What was said becomes memory when a worker runs:"
            f" recollect work{voice.where}"
        )
    facts = len(place.space.facts.list(LIST_MAX, session=session_id))
    found = counted(facts, "fact") if facts else "no facts, but every word can be found"
    return f"The session has ended. What was said is memory now: {found}."
