"""N8: an agent of the OpenAI Agents SDK that remembers with Recollect, over a restart.

The SDK's own runner and its own scripted model; everything else is real.
"""

from __future__ import annotations

import asyncio
from typing import Any

from agents import Agent, RunConfig, Runner, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call

import recollect
from recollect.adapters.openai_agents import RecollectSession


@function_tool
def weather(city: str) -> str:
    """What the weather is like."""
    return f"sunny in {city}"


def ask(session: RecollectSession, question: str, *answers: Any) -> tuple[str, list[Any]]:
    """One run of the SDK's loop; what it answers, and what the model saw at its last call."""
    model = ScriptedModel(list(answers))
    agent = Agent(name="assistant", model=model, tools=[weather])

    async def run() -> str:
        config = RunConfig(tracing_disabled=True)
        result = await Runner.run(agent, question, session=session, run_config=config)
        return str(result.final_output)

    answer = asyncio.run(run())
    return answer, list(model.calls[-1].input)


def test_a_conversation_goes_on_after_a_restart_and_becomes_memory(durable_store_url: str) -> None:
    with recollect.open(durable_store_url) as memory:
        session = RecollectSession(memory.space("alice"), "user-42")
        call = function_call("weather", {"city": "Lisbon"}, call_id="call_1")
        answer, _ = ask(
            session,
            "I moved to Lisbon in May. What is the weather there?",
            [call],
            [assistant_message("It is sunny.")],
        )
        assert answer == "It is sunny."
        kept = asyncio.run(session.get_items())

    with recollect.open(durable_store_url) as memory:
        alice = memory.space("alice")
        session = RecollectSession(alice, "user-42")
        assert asyncio.run(session.get_items()) == kept
        _, seen = ask(session, "And in Porto?", [assistant_message("I have not looked.")])
        assert [item.get("type", item.get("role")) for item in kept] == [
            "user",
            "function_call",
            "function_call_output",
            "message",
        ]
        assert [dict(item) for item in seen[: len(kept)]] == kept
        assert seen[-1]["content"] == "And in Porto?"
        memory.work(all=True)
        hits = alice.recall("when did she move to Lisbon?", kinds=["fact"])
        assert any("Lisbon" in hit.text for hit in hits)
        assert hits[0].sources[0].session_id == alice.session("user-42").id
