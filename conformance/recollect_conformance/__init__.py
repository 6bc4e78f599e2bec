"""The conformance suite: what every store promises, as cases to run a backend against.

`python -m recollect_conformance [URL …]` prints a report for stores that Recollect can open;
`run` does the same for a backend of your own. `recollect_conformance.scripted` answers like a
model, from a script.
"""

from recollect_conformance.case import Case
from recollect_conformance.harness import Harness, OpenStore
from recollect_conformance.suite import FreshStore, Report, Result, cases, run

__all__ = ["Case", "FreshStore", "Harness", "OpenStore", "Report", "Result", "cases", "run"]
