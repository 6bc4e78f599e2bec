"""Which commands belong together: said once, and put under each one's help."""

from __future__ import annotations

SEE_ALSO: dict[str, tuple[str, ...]] = {
    "demo": ("append", "work", "facts", "recall"),
    "append": ("history", "sessions", "import", "work"),
    "history": ("append", "sessions", "recall"),
    "import": ("watch", "hook", "work"),
    "watch": ("import", "hook", "worker"),
    "sessions": ("history", "status", "facts"),
    "recall": ("context", "facts", "docs"),
    "context": ("recall", "hook", "mcp"),
    "chat": ("recall", "status"),
    "facts": ("recall", "quarantine", "forget"),
    "quarantine": ("facts", "forget"),
    "docs": ("recall", "generations", "forget"),
    "status": ("work", "retry", "doctor"),
    "work": ("worker", "status", "consolidate"),
    "worker": ("work", "status", "serve"),
    "retry": ("status", "work"),
    "consolidate": ("generations", "work", "docs"),
    "generations": ("consolidate", "docs"),
    "serve": ("keys", "worker", "mcp"),
    "keys": ("serve",),
    "hook": ("import", "mcp", "context"),
    "sweep": ("worker", "status"),
    "mcp": ("hook", "serve"),
    "forget": ("facts", "docs", "export"),
    "audit": ("serve", "keys"),
    "spaces": ("status", "export", "forget"),
    "export": ("load", "backup"),
    "load": ("export", "import"),
    "migrate": ("export", "backup", "doctor"),
    "backup": ("restore", "export"),
    "restore": ("backup", "doctor"),
    "doctor": ("status", "retry", "backup"),
    "bench": ("recall",),
    "config": ("status",),
    "verbs": ("status",),
    "completion": ("config",),
}


def advice(command: str) -> str | None:
    """The last line of a command's help; none for one that stands alone."""
    others = SEE_ALSO.get(command, ())
    named = ", ".join(f"recollect {other}" for other in others)
    return f"See also: {named}. Exit codes and environment: recollect --help." if others else None
