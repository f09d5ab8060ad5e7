"""Whether a time stamp can be true, judged by the clock of whoever takes the sample in."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from flatrope_planner.domain import ns_to_seconds, seconds_to_ns
from flatrope_planner.errors import InputError

# Clocks of several machines differ, and a simulator's /clock may come a little after what it stamps.
FUTURE_TOLERANCE_S = 0.5
# Samples older than the age limit still fill the history, but for these many seconds at most.
HISTORY_S = 10.0
# A clock beyond this is wall time (2001), one before it started with a simulation.
WALL_TIME_FROM_NS = seconds_to_ns(1e9)


@dataclass(frozen=True)
class StampCheck:
    """Lets in stamps that lie near the present, and tells which inputs are too old to plan from."""

    # The present in ROS time (ns), 0 while simulated time has not begun.
    now_ns: Callable[[], int]
    # Oldest input that is planned from (s); 0: any.
    max_age_s: float

    def check(self, stamp_ns: int) -> None:
        """Let a stamp pass.

        Raises:
            InputError: if it is not set, or lies in the future or too far in the past, saying by how much.
        """
        if stamp_ns <= 0:
            msg = f"stamp is {ns_to_seconds(stamp_ns):g} s: whoever publishes this does not set it"
            raise InputError(msg)
        now_ns = self.now_ns()
        if now_ns == 0:
            msg = "there is no time yet to judge its stamp by: nothing has come on /clock"
            raise InputError(msg)
        ahead_s = ns_to_seconds(stamp_ns - now_ns)
        if ahead_s > FUTURE_TOLERANCE_S:
            msg = f"stamp lies {ahead_s:.2f} s ahead of the clock{_guess(stamp_ns, now_ns)}"
            raise InputError(msg)
        if self.max_age_s and -ahead_s > self.max_age_s + HISTORY_S:
            msg = f"stamp lies {-ahead_s:.2f} s behind the clock{_guess(stamp_ns, now_ns)}"
            raise InputError(msg)

    def ages_s(self, newest_ns: Mapping[str, int]) -> dict[str, float]:
        """Input -> age of its newest stamp."""
        now_ns = self.now_ns()
        return {name: ns_to_seconds(now_ns - stamp_ns) for name, stamp_ns in newest_ns.items()}

    def stale(self, newest_ns: Mapping[str, int]) -> str | None:
        """Which inputs are too old to plan from, in words; None if none is."""
        if not self.max_age_s:
            return None
        old = [
            f"{name} is {age_s:.2f} s old" for name, age_s in self.ages_s(newest_ns).items() if age_s > self.max_age_s
        ]
        return f"{', '.join(old)}; nothing is planned from more than {self.max_age_s:g} s" if old else None


def _guess(stamp_ns: int, now_ns: int) -> str:
    """What stamp and clock look like beside each other."""
    if stamp_ns >= WALL_TIME_FROM_NS > now_ns:
        return ": it is wall time, and the planner goes by simulated time (use_sim_time)"
    if stamp_ns < WALL_TIME_FROM_NS <= now_ns:
        return ": it is simulated time, and the planner goes by wall time (use_sim_time is false)"
    if now_ns - stamp_ns > seconds_to_ns(3600.0):
        return ": a recording is played with --clock to planners with use_sim_time"
    return ""
