"""What callers may hand over, as Hypothesis strategies: texts with every oddity, any JSON value."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st


def _with_pairs_joined(text: str) -> str:
    """JSON writes a character above U+FFFF as two surrogates and reads two as one character."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


# Everything a Python str can hold: NUL, lone surrogates, characters beyond the basic plane.
any_text: st.SearchStrategy[str] = st.text(st.characters(), max_size=40).map(_with_pairs_joined)

_scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | any_text
)

json_values: st.SearchStrategy[Any] = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(any_text, inner, max_size=4),
    max_leaves=12,
)

_TYPES = (
    *("text", "input_text", "output_text", "refusal", "thinking", "redacted_thinking"),
    *("reasoning", "tool_use", "tool_result", "image", "image_url", "input_image", "audio"),
    *("input_audio", "file", "input_file", "document", "function_call", "function_call_output"),
    *("custom_tool_call", "custom_tool_call_output", "message", "summary_text", "hologram"),
)
_FIELDS = (
    *("type", "role", "content", "name", "text", "refusal", "thinking", "id", "input", "source"),
    *("tool_use_id", "is_error", "tool_calls", "tool_call_id", "function", "arguments", "output"),
    *("image_url", "url", "uri", "file", "file_id", "filename", "input_audio", "media_type"),
    *("title", "data", "call_id", "summary", "function_call"),
)
_ROLES = ("system", "developer", "user", "assistant", "tool", "note", "human", "ai", "function")

# Dicts made of the words providers use, in every wrong place: they reach every branch of a reader.
message_like: st.SearchStrategy[dict[str, Any]] = st.recursive(
    _scalars | st.sampled_from((*_TYPES, *_ROLES, "data:image/png;base64,AAAA")),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(_FIELDS), inner, max_size=5)
        | st.fixed_dictionaries({"type": st.sampled_from(_TYPES)}, optional={"content": inner})
    ),
    max_leaves=12,
).flatmap(
    lambda value: st.fixed_dictionaries(
        {"role": st.sampled_from(_ROLES), "content": st.just(value)},
        optional={"tool_calls": st.just(value), "name": any_text, "type": st.sampled_from(_TYPES)},
    )
)

text_parts = st.builds(lambda text: {"type": "text", "text": text}, any_text)

# Messages that every reader has to accept, with fields nobody has heard of beside the known ones.
messages: st.SearchStrategy[dict[str, Any]] = st.builds(
    lambda known, extra: {**{f"x_{name}": value for name, value in extra.items()}, **known},
    st.fixed_dictionaries(
        {
            "role": st.sampled_from((*_ROLES, "User", " assistant ", "model")),
            "content": st.none() | any_text | st.lists(text_parts | any_text, max_size=3),
        },
        optional={"name": st.none() | st.text("abc ö", max_size=8)},
    ),
    st.dictionaries(any_text, json_values, max_size=2),
)
