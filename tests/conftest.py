"""Hypothesis profiles, in one place.

dev: new examples each run, failures kept in .hypothesis. ci (when CI is set): the same examples each run, nothing kept.
No deadline in either: a time limit per example measures the machine, not the code.
"""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("dev", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, database=None, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "dev")
