"""What a person picks rather than a model calls: pages of memory and the recap, and two prompts.

All of it is read by the tools, so that it is redacted, fenced and cut to the project as theirs is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import quote, unquote

from mcp import MCPError
from mcp.types import (
    INVALID_PARAMS,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    Prompt,
    PromptArgument,
    PromptMessage,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextContent,
    TextResourceContents,
)

from recollect.collection import storable
from recollect.interfaces.mcp.answers import PromptBlock, WholeMemory
from recollect.interfaces.mcp.tools import LIST_LIMIT_MAX, Tools

RECAP, MEMORY, ABOUT = "recollect://recap", "recollect://memory/", "recollect://about/"
MARKDOWN_TYPE = "text/markdown"
PAGES = "~/memory/"
EVIDENCE = ("~/memory/rollout_summaries", "~/memory/raw_memories")  # from which pages are made
CONTEXT_TOKENS = 2000

TEMPLATES = ListResourceTemplatesResult(
    resource_templates=[
        ResourceTemplate(
            name="memory",
            title="One memory",
            uri_template=f"{MEMORY}{{+id}}",
            description="A page by its path, or a fact, a session's summary or a record by its id.",
            mime_type=MARKDOWN_TYPE,
        ),
        ResourceTemplate(
            name="about",
            title="What is remembered about something",
            uri_template=f"{ABOUT}{{+question}}",
            description="A short block about any text: a question, a name, a task.",
            mime_type=MARKDOWN_TYPE,
        ),
    ]
)
PROMPTS = ListPromptsResult(
    prompts=[
        Prompt(
            name="recall",
            title="Recall something",
            description="Put what is remembered about something before the model.",
            arguments=[
                PromptArgument(
                    name="about", description="A question, a name, a task.", required=True
                )
            ],
        ),
        Prompt(
            name="recap",
            title="Recap",
            description="Where things stand: in this project, or with this person.",
        ),
    ]
)


class Resources:
    """The pages, the recap and the prompts of one space."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    def listed(self, cursor: str | None) -> ListResourcesResult:
        """The recap, then the pages of memory; a page of the list may have none of them."""
        page = self._tools.list_memories("document", LIST_LIMIT_MAX, cursor=cursor)
        recap = Resource(
            uri=RECAP,
            name="recap",
            title="Recap",
            description="Where things stand: in this project, or with this person.",
            mime_type=MARKDOWN_TYPE,
        )
        pages = [
            Resource(
                uri=f"{MEMORY}{quote(each.id, safe='/~')}",
                name=each.id.removeprefix(PAGES),
                description=each.text,
                mime_type=MARKDOWN_TYPE,
            )
            for each in page.memories
            if each.id.startswith(PAGES) and not each.id.startswith(EVIDENCE)
        ]
        return ListResourcesResult(
            resources=pages if cursor else [recap, *pages], next_cursor=page.next_cursor
        )

    def read(self, uri: str) -> ReadResourceResult:
        """The text behind a URI, fenced as the tools' answers are."""
        if uri == RECAP:
            text = self._block("").as_text()
        elif uri.startswith(MEMORY):
            text = self._whole(unquote(uri.removeprefix(MEMORY))).as_text()
        elif uri.startswith(ABOUT):
            text = self._block(unquote(uri.removeprefix(ABOUT))).as_text()
        else:
            raise MCPError(code=INVALID_PARAMS, message=f"unknown resource: {uri[:200]!r}")
        found = TextResourceContents(uri=uri, mime_type=MARKDOWN_TYPE, text=storable(text))
        return ReadResourceResult(contents=[found])

    def prompt(self, name: str, given: Mapping[str, str]) -> GetPromptResult:
        """What a person sends by picking a prompt."""
        known = {each.name: each for each in PROMPTS.prompts}
        if name not in known:
            raise MCPError(
                code=INVALID_PARAMS,
                message=f"unknown prompt: {name[:100]!r}; there are {', '.join(known)}",
            )
        about = given.get("about", "").strip()
        if name == "recall" and not about:
            raise MCPError(
                code=INVALID_PARAMS, message="recall needs the argument about: what to recall"
            )
        asks = f"What do you know about this: {about}" if name == "recall" else "Where do we stand?"
        block = self._block(about if name == "recall" else "").as_text()
        text = storable(f"{asks}\n\nThis is remembered. Say what it does not tell.\n\n{block}")
        message = PromptMessage(role="user", content=TextContent(type="text", text=text))
        return GetPromptResult(description=known[name].description, messages=[message])

    def _block(self, query: str) -> PromptBlock:
        return self._tools.context(query, CONTEXT_TOKENS)

    def _whole(self, memory_id: str) -> WholeMemory:
        """All of a memory; a tool gives it in parts."""
        whole, text = self._tools.get_memory(memory_id), ""
        part = whole
        while part.next_offset is not None:
            text += part.text
            part = self._tools.get_memory(memory_id, offset=part.next_offset)
        return replace(whole, text=text + part.text, next_offset=None, note="")
