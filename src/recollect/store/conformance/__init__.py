"""The conformance suite: what every store promises, as cases to run a backend against.

`python -m recollect.store.conformance [URL …]` prints a report for stores that Recollect can open;
`run` does the same for a backend of your own. It needs nothing but the standard library.
"""

from recollect.store.conformance.case import Case
from recollect.store.conformance.harness import Harness, OpenStore
from recollect.store.conformance.suite import FreshStore, Report, Result, cases, run

__all__ = ["Case", "FreshStore", "Harness", "OpenStore", "Report", "Result", "cases", "run"]
