"""Settings: where they come from, their defaults and their bounds.

Explicit argument > environment (`RECOLLECT_…`) > `recollect.toml` or `recollect.yaml` in the
working directory, else in the user's configuration directory > default. Every value is checked
against its bounds wherever it comes from; an unknown name is an error, not a silent nothing. In the
environment it is one where it is nearly a setting's; others are named by the command line.
"""

from recollect.config.settings import DEFAULT_SPACE, Described, Settings, described
from recollect.config.sources import load, read_file, unknown_variables, user_config_dir

__all__ = [
    "DEFAULT_SPACE",
    "Described",
    "Settings",
    "described",
    "load",
    "read_file",
    "unknown_variables",
    "user_config_dir",
]
