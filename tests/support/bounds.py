"""What the accounting tests mean by a bound on its safe side, and tight."""

from __future__ import annotations

from typing import Any

import mpmath as mp


def assert_tight_upper(got: float, truth: Any, slack: float, *, floor: float = 0.0) -> None:
    """truth <= got <= truth (1 + slack) + floor, compared exactly.

    truth: an mpmath number, a float or an int. floor: allowance where the truth is zero or irrelevantly small.
    """
    exact = mp.mpf(truth)
    ratio = mp.nstr(got / exact - 1, 5) if exact > 0 else "undefined"
    assert got >= exact, f"{got!r} is below the truth {mp.nstr(exact, 25)} (relative gap {ratio})"
    assert got <= exact * (1 + mp.mpf(slack)) + floor, f"{got!r} is loose: truth {mp.nstr(exact, 25)}, gap {ratio}"
