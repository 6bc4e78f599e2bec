"""A hook of mkdocs: links out of docs/ lead into the repository, or are plain text without one."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"(?<!!)\[(?P<words>[^\]]+)\]\((?P<to>\.\./[^)#\s]+)(?P<anchor>#[^)\s]+)?\)")


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """The text of a page with its links to files outside docs/ rewritten; one to nothing raises."""
    folder = posixpath.dirname(f"docs/{page.file.src_uri}")

    def rewritten(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, link["to"]))
        if path.startswith("docs/"):
            return link[0]
        if not (ROOT / path).exists():
            raise ValueError(f"{page.file.src_uri} links to {path}, and there is no such file")
        if not config.repo_url:
            return link["words"]
        target = f"{config.repo_url.rstrip('/')}/blob/main/{path}{link['anchor'] or ''}"
        return f"[{link['words']}]({target})"

    return LINK.sub(rewritten, markdown)
