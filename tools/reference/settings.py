"""The reference of the settings: every one with its default and bounds, and how to write them."""

from __future__ import annotations

from recollect.config import Described, described
from recollect.interfaces.cli.store import bounds_in_words, value_in_words
from tools.reference.layout import page, table

PREFACE = """\
A setting is taken from the first of these places that has it:

1. an explicit argument: `recollect.open(…, settings={"mark_threshold": 10})`, or an option of a
   command;
2. the environment: `RECOLLECT_` and the name in capitals;
3. a file: `recollect.toml`, `recollect.yaml` or `recollect.yml` in the working directory, else in
   the user's configuration directory; or the one file named with
   `recollect.open(…, settings="my.toml")`;
4. the default.

Every value is checked against its bounds wherever it comes from, and a name that does not exist is
an error. In the environment, where others may have put names like that, it is one if it is nearly a
setting's; of the rest every command but `hook` says on standard error that they are none.
`recollect config` shows each setting's value and where it came from.
"""

SECTIONS = """\
## The `agents` section

Memory can be switched off for single agents: `agents.<name>.memory.enabled` is `true` when omitted.
With `false` every call works and nothing is kept: no file is opened for that agent, and a running
conversation keeps its newest `max_history_len` records in the process. It can only be set in a file
or as an argument (`settings={"agents": {"scratch": False}}`), not in the environment.

With `database = "per-agent"`, `agents.<name>.data_dir` is the directory of that agent's own
`memory.db` in place of `{data_dir}/agents/<name>`; an empty one switches its memory off. Names are
read as they are written: in YAML too, `on`, `no` and `null` are names.

## The `modules` section

`modules: memory.sqlite:` is another way to write the settings of the one global SQLite database:

| name | means | default |
|---|---|---|
| `path` | `sqlite_path` | `{data_dir}/memory.db` |
| `wal` | `sqlite_wal` | `true` |
| `busy_timeout` | `sqlite_busy_timeout_ms` | `5000` |

`{data_dir}` in a path stands for the setting of that name. An empty `data_dir` and no path switch
memory off altogether.

## Examples

`recollect.toml`, for a server with many agents:

```toml
store = "postgresql://recollect@db.example.org/memory?schema=recollect"
postgres_pool_max = 16
mark_threshold = 10          # more than ten unprocessed records mark a session
idle_sweep_seconds = 1800

[agents.scratch.memory]
enabled = false              # this agent's conversations are not kept
```

`recollect.yaml`, for one file that all agents share:

```yaml
modules:
  memory.sqlite:
    path: "/data/memory.db"   # created with its directory when it is first needed
    wal: true                 # readers do not wait for writers
    busy_timeout: 5000        # milliseconds to wait for another process's lock

agents:
  assistant:
    memory:
      enabled: true           # the same as leaving it out
```

`recollect.toml`, for a database per agent, in `{data_dir}/agents/<name>/memory.db`
(`recollect.open_agents()` opens them):

```toml
database = "per-agent"
data_dir = "/var/lib/recollect"
```
"""


ENVIRONMENT = (
    "In the environment `mark_threshold` is `RECOLLECT_MARK_THRESHOLD`, and so on;"
    " `true`, `yes`, `on` and `1` are true, `false`, `no`, `off` and `0` are false."
)


def render() -> str:
    headers = ("setting", "type", "default", "bounds", "what it does")
    rows = table(headers, map(_row, described()))
    return page("Settings", PREFACE, "## Every setting", rows, ENVIRONMENT, SECTIONS)


def _row(setting: Described) -> tuple[str, ...]:
    bounds = bounds_in_words(setting).replace("|", "or")
    return f"`{setting.name}`", setting.type.__name__, _default(setting), bounds, setting.doc


def _default(setting: Described) -> str:
    if setting.name == "data_dir":
        return "the user's data directory"  # another one on every machine
    return "none" if setting.default is None else f"`{value_in_words(setting.default)}`"
