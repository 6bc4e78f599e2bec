"""`recollect keys`: who may come in over HTTP, to which space, and for how long."""

from __future__ import annotations

from datetime import timedelta

import click

from recollect.errors import NotFound
from recollect.interfaces.cli.groups import ListingGroup
from recollect.interfaces.cli.options import target_options
from recollect.interfaces.cli.output import moment, note, one_line, table, write, write_json
from recollect.interfaces.cli.target import Target, with_target
from recollect.interfaces.http.bearer import make_key
from recollect.interfaces.views import view
from recollect.session import LIST_MAX
from recollect.store.key_protocol import ApiKey, Scope

HEADERS = ("ID", "NAME", "SPACE", "SCOPE", "CREATED", "EXPIRES", "REVOKED", "LAST USED")
DAYS_MAX = 36_500


@click.group("keys", cls=ListingGroup)
@target_options
def command(**_given: object) -> None:
    """Keys for recollect serve; without a verb, the list of them.

    A key opens one space, or all of them, and is for reading, for writing as well, or for admin,
    which forgets and purges besides. Its secret is shown once, when it is made: the store keeps a
    digest alone.

    \b
    Examples:
      recollect keys create phone --space alice
      recollect keys create dashboard --all-spaces --scope read --days 90
      recollect keys revoke 019a6b1c-0d9e-7c41-9c56-2f1f0b6e6a10
    """


@command.command("create")
@click.argument("name")
@click.option("--all-spaces", is_flag=True, help="It opens every space, those to come included.")
@click.option(
    "--scope",
    type=click.Choice([scope.value for scope in Scope]),
    default=Scope.WRITE.value,
    show_default=True,
    help="What it is for; each includes those before it.",
)
@click.option(
    "--days",
    type=click.IntRange(1, DAYS_MAX),
    metavar="N",
    help="It is valid for N days. Default: until it is revoked.",
)
@with_target
def create(target: Target, name: str, all_spaces: bool, scope: str, days: int | None) -> None:
    """Make a key called NAME and print its secret, this once.

    The secret alone goes to standard output, so that it can be handed on.

    \b
    Examples:
      recollect keys create phone --space alice
      recollect keys create backup --all-spaces --scope admin --days 7 --json
    """
    if all_spaces == (target.space is not None):
        raise click.UsageError("Say what it opens: --space NAME or --all-spaces.")
    with target.open() as memory:
        until = None if days is None else memory.clock.now() + timedelta(days=days)
        key, secret = make_key(
            memory, name, space=target.space, scope=Scope(scope), expires_at=until
        )
    if target.as_json:
        write_json(view(key) | {"secret": secret})
        return
    opens = "every space" if key.space is None else f"space {one_line(key.space)!r}"
    note(f"Key {key.id} opens {opens} ({key.scope.value}). Its secret, shown this once:")
    write(secret)


@command.command("list")
@click.option(
    "--limit",
    type=click.IntRange(1, LIST_MAX),
    default=LIST_MAX,
    show_default=True,
    metavar="N",
    help="At most N keys.",
)
@click.option("--after", default="", metavar="ID", help="The next page: those after this one.")
@with_target
def list_(target: Target, limit: int, after: str) -> None:
    """List keys, the oldest first, also those that are over; never a secret.

    \b
    Examples:
      recollect keys list
      recollect keys list --space alice --json
    """
    with target.open_existing() as memory:
        found = memory.store.api_keys.list(after, limit)
    shown = [key for key in found if target.space is None or key.space == target.space]
    if target.as_json:
        write_json(view(shown))
        return
    if not shown:
        note(f"No keys. Make one: recollect keys create NAME{target.arguments} --space NAME")
        return
    for line in table(HEADERS, [_row(key) for key in shown]):
        write(line)


command.lists_by(list_)


def _row(key: ApiKey) -> tuple[str, ...]:
    times = (key.created_at, key.expires_at, key.revoked_at, key.last_used_at)
    space = "(all)" if key.space is None else key.space
    return (key.id, key.name, space, key.scope.value, *map(moment, times))


@command.command("revoke")
@click.argument("key_id")
@with_target
def revoke(target: Target, key_id: str) -> None:
    """Close a key for good; the next request with it is refused.

    \b
    Examples:
      recollect keys revoke 019a6b1c-0d9e-7c41-9c56-2f1f0b6e6a10
    """
    with target.open_existing() as memory:
        is_done = memory.store.api_keys.revoke(key_id, memory.clock.now())
    if not is_done:
        raise NotFound(f"there is no key {key_id!r} that is not revoked")
    if target.as_json:
        write_json({"id": key_id, "revoked": True})
    else:
        write(f"Key {one_line(key_id)} is revoked.")
