"""Servers of models as they run on somebody's own machine, in the dialect of each program.

    with local_server("ollama", ["- event: …"], window=8192) as server:
        open_model(Settings(model="ollama/tiny"), {"OLLAMA_HOST": server.url})

Each has one chat model, `tiny`. Conversations are answered by the script; what the server says of
itself, and what it refuses, is done here, the way that program does it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from recollect_conformance.scripted import (
    JSON,
    Scripted,
    ScriptedServer,
    Step,
    raw,
    status,
)
from recollect_conformance.scripted_frames import Received

MODEL = "tiny"
WINDOW = 8192
DIALECTS = ("ollama", "lmstudio", "llamacpp", "openai")


def local_server(
    dialect: str,
    script: Sequence[Scripted] = (),
    *,
    window: int | None = WINDOW,
    has_form: bool = True,
) -> ScriptedServer:
    """A server of one dialect. Without `has_form` it takes no schema, and no wish for JSON."""
    said = _SAID[dialect](window)
    rest = iter(script)

    def describe(received: Received) -> Scripted:
        known = received.path in said
        return _document(said[received.path]) if known else status(404, "Not Found")

    def answer(received: Received) -> Scripted:
        if received.path == "/api/show" and received.body.get("model") == f"{MODEL}:latest":
            return _document(_shown(window))
        if not received.path.endswith(("/chat/completions", "/api/chat", "/embeddings")):
            return status(404, "Not Found")
        if dialect != "llamacpp" and received.body.get("model") not in (MODEL, f"{MODEL}:latest"):
            return _unknown(dialect, received.body.get("model"))
        asked = received.body.keys() & {"response_format", "format"}
        if asked and not has_form:
            return status(400, f"'{min(asked)}' is not supported")
        step = next(rest, None) or status(400, "the script is over")
        return _ollama_answer(step) if received.path == "/api/chat" and _is_said(step) else step

    return ScriptedServer(answer, describe)


def _is_said(step: Scripted) -> bool:
    return isinstance(step, str | Mapping)


def _document(content: object) -> Step:
    return raw(json.dumps(content).encode(), headers=JSON)


def _ollama_answer(step: Any) -> Step:
    text = step if isinstance(step, str) else json.dumps(step)
    return _document(
        {
            "model": f"{MODEL}:latest",
            "message": {"role": "assistant", "content": text, "thinking": "Let me see …"},
            "done": True,
            "done_reason": "stop",
            "prompt_eval_count": 100,
            "eval_count": 20,
        }
    )


def ollama_calls(name: str, arguments: Mapping[str, Any]) -> Step:
    """An answer of Ollama that calls a tool; its arguments are an object, and it has no id."""
    call = {"function": {"name": name, "arguments": dict(arguments)}}
    message = {"role": "assistant", "content": "", "tool_calls": [call]}
    return _document({"model": MODEL, "message": message, "done": True, "done_reason": "stop"})


def _unknown(dialect: str, model: object) -> Step:
    if dialect == "ollama":
        return status(404, {"error": f"model '{model}' not found"})
    return status(404, f"The model `{model}` does not exist.", kind="model_not_found")


def _shown(window: int | None) -> Mapping[str, Any]:
    details = {} if window is None else {"tiny.context_length": window}
    return {
        "capabilities": ["completion", "tools"],
        "parameters": 'stop "<|end|>"',
        "model_info": {"general.architecture": "tiny", **details},
    }


def _ollama(_window: int | None) -> Mapping[str, object]:
    return {"/api/tags": {"models": [{"name": f"{MODEL}:latest", "model": f"{MODEL}:latest"}]}}


def _lmstudio(window: int | None) -> Mapping[str, object]:
    loaded: dict[str, Any] = {"state": "not-loaded"}
    if window is not None:
        loaded = {"state": "loaded", "loaded_context_length": window, "max_context_length": 2**17}
    own = {"id": MODEL, "type": "llm", **loaded}
    vectors = {"id": "tiny-embed", "type": "embeddings", "state": "loaded"}
    return {"/api/v0/models": {"data": [vectors, own]}}


def _llamacpp(window: int | None) -> Mapping[str, object]:
    properties = {} if window is None else {"default_generation_settings": {"n_ctx": window}}
    entry = {"id": MODEL, "owned_by": "llamacpp"}
    return {"/v1/models": {"data": [entry]}, "/props": {"total_slots": 1, **properties}}


def _openai(window: int | None) -> Mapping[str, object]:
    entry = {"id": MODEL, "owned_by": "vllm"}
    return {
        "/v1/models": {"data": [entry if window is None else {**entry, "max_model_len": window}]}
    }


_SAID = {"ollama": _ollama, "lmstudio": _lmstudio, "llamacpp": _llamacpp, "openai": _openai}
