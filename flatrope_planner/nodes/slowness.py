"""Why a plan came too late, in words for whoever has to mend it."""

import math
from dataclasses import dataclass

# A tick that took less than this share of its plan's age is not what made the plan old.
OWN_SHARE = 0.5
# What can be done about ticks that take too long.
REMEDY = (
    "make ticks quicker (a smaller target, another device), or set deadline_s, max_plan_age_s and period_s to more "
    "than a tick takes"
)
# Ages beyond this are of another clock (s).
CLOCKS_APART_S = 1e6


@dataclass(frozen=True)
class Slowness:
    """The times of a tick that was too late."""

    # Of the observation when the plan was done, and when the tick was seen first (s of ROS time).
    age_s: float
    begun_age_s: float
    # How long the planner was at it (s of real time).
    took_s: float

    def words(self, deadline_s: float, max_plan_age_s: float) -> str:
        """What took the time and what to do about it; "" where it is no matter of time."""
        if not 0.0 < self.age_s < CLOCKS_APART_S:
            return ""
        if self.age_s - self.begun_age_s < OWN_SHARE * self.age_s and self.took_s < OWN_SHARE * self.age_s:
            return (
                f"the tick took {self.took_s:.2f} s, but its observation was {self.begun_age_s:.2f} s old when it "
                "began: make the inputs quicker, look at their age_s"
            )
        return f"a tick takes {self.took_s:.2f} s and {_bounds(deadline_s, max_plan_age_s)}: {REMEDY}"


def shortest_bound_s(deadline_s: float, max_plan_age_s: float) -> float:
    """What a plan may take at most; infinite where both are 0, for none."""
    return min(filter(None, (deadline_s, max_plan_age_s)), default=math.inf)


def foreseen(took_s: float, deadline_s: float, max_plan_age_s: float) -> str:
    """What is to be expected of a planner whose plan for the warm-up took so long (s of real time); "" for nothing.

    The bounds are of ROS time, which may be slower, and 0 for none.
    """
    if took_s < shortest_bound_s(deadline_s, max_plan_age_s):
        return ""
    bounds = _bounds(deadline_s, max_plan_age_s)
    return (
        f"a plan takes about {took_s:.2f} s and {bounds}: plans will be late, unless simulated time waits for them; "
        f"{REMEDY}"
    )


def _bounds(deadline_s: float, max_plan_age_s: float) -> str:
    return f"deadline_s is {deadline_s:g}, max_plan_age_s {max_plan_age_s:g}"
