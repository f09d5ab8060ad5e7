"""Adds up the rows of plans: of a bag, and of all bags. What nothing is known about is null and says why."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from flatrope_planner.evaluation.replay.extended_comfort import CHANGE_BOUNDS
from flatrope_planner.evaluation.replay.horizon_totals import NO_PLANS, HorizonTotals, mean
from flatrope_planner.evaluation.replay.least_errors import LeastErrors
from flatrope_planner.evaluation.replay.rows import NOT_FINITE, rounded
from flatrope_planner.planning.comfort import BOUNDS
from flatrope_planner.planning.consistency import Consistency

SUMMED = ("rounds", "proposed", "accepted", "committed", "prefill_proposed", "prefill_accepted")
# Moments at which contestants differ that are named.
NAMED_DIFFERENCES = 10
FINDINGS = tuple(finding.name.lower() for finding in Consistency)
NO_SCENE = (
    "collisions, time to collision, drivable area, direction, traffic lights, lane keeping and progress need a map and "
    "the other road users, which are not read"
)
NO_PAIRS = "no two plans follow each other"


@dataclass
class Totals:
    """Everything that is said of many plans, except times."""

    rows: int = 0
    _errors: HorizonTotals = field(default_factory=HorizonTotals)
    _least: LeastErrors = field(default_factory=LeastErrors)
    _exceeded: Counter[str] = field(default_factory=Counter)
    # Plans whose comfort can be told.
    _judged: int = 0
    _comfortable: int = 0
    _changes: list[dict[str, float]] = field(default_factory=list)
    _kept: list[float] = field(default_factory=list)
    _incomplete: int = 0
    _refused: int = 0
    _findings: Counter[str] = field(default_factory=Counter)
    _texts: set[str] = field(default_factory=set)
    _speculation: Counter[str] = field(default_factory=Counter)
    _histogram: Counter[int] = field(default_factory=Counter)
    _compared: Counter[str] = field(default_factory=Counter)
    _differing: list[float] = field(default_factory=list)

    def add(self, row: Mapping[str, Any]) -> None:
        """Count one row of plans.jsonl."""
        self.rows += 1
        self._errors.add(row["errors"])
        self._least.add(row["samples"], row["least_errors"] or {})
        if row["discomforts"] is not None:
            self._judged += 1
            self._exceeded.update(row["discomforts"].keys())
            self._comfortable += not row["discomforts"]
        if row["change"] is not None:
            self._changes.append(row["change"])
            self._kept.append(row["rationale_kept"])
        self._incomplete += not row["complete"]
        self._refused += bool(row["refused"])
        self._findings[row["consistency"]] += 1
        self._texts.add(row["rationale"])
        self._add_speculation(row)

    def summary(self) -> dict[str, Any]:
        """The sums, means and shares."""
        summary: dict[str, Any] = rounded(
            {
                "plans": self.rows,
                # By the planner node's validator, which would have driven a fallback instead.
                "refused": self._refused,
                "errors": self._errors.summary(),
                "least_errors": self._least.summary(),
                "scene": _unavailable(NO_SCENE),
                "comfort": self._comfort(),
                "extended_comfort": self._extended_comfort(),
                "rationale": self._rationale(),
                "speculation": self._speculated(),
                "compared": self._comparison(),
            }
        )
        return summary

    def _add_speculation(self, row: Mapping[str, Any]) -> None:
        counts, compared = row["speculation"], row["compared"]
        self._speculation.update({name: counts[name] for name in SUMMED})
        self._histogram.update(dict(enumerate(counts["acceptance_histogram"])))
        if compared:
            same = compared["identical_rationale"], compared["identical_trajectory"]
            self._compared.update({"plans": 1, "identical_rationales": same[0], "identical_trajectories": same[1]})
            if not all(same):
                self._differing.append(row["t0_s"])

    def _comfort(self) -> dict[str, Any]:
        if not self._judged:
            return _unavailable(NOT_FINITE if self.rows else NO_PLANS)
        within = {
            bound.quantity.replace(" ", "_"): 1.0 - self._exceeded[bound.quantity] / self._judged for bound in BOUNDS
        }
        return {"comfortable": self._comfortable / self._judged, "within": within}

    def _extended_comfort(self) -> dict[str, Any]:
        if not self._changes:
            return _unavailable(NO_PAIRS)
        columns = {name: [change[name] for change in self._changes] for name in CHANGE_BOUNDS}
        within = [all(change[name] <= bound for name, bound in CHANGE_BOUNDS.items()) for change in self._changes]
        means = {name: mean(column) for name, column in columns.items()}
        return {"pairs": len(within), "comfortable": mean(within), "mean_change": means}

    def _rationale(self) -> dict[str, Any]:
        if not self.rows:
            return _unavailable(NO_PLANS)
        return {
            "distinct": len(self._texts),
            "incomplete": self._incomplete,
            "stability": {
                "pairs": len(self._kept),
                "identical": mean([share == 1.0 for share in self._kept]),
                "common_prefix": mean(self._kept),
            }
            if self._kept
            else _unavailable(NO_PAIRS),
            "consistency": self._consistency(),
        }

    def _consistency(self) -> dict[str, Any]:
        """Whether trajectories do what their rationales say, of those that say anything that could be broken."""
        counts = {name: self._findings[name] for name in FINDINGS}
        judged = counts["consistent"] + counts["inconsistent"]
        if not judged:
            return {**counts, **_unavailable("no rationale states anything that a trajectory could break")}
        return {**counts, "share": counts["consistent"] / judged}

    def _speculated(self) -> dict[str, Any]:
        sums = self._speculation
        rounds = sums["rounds"]
        if not rounds:
            return _unavailable(NO_PLANS if not self.rows else "no round of verification was needed")
        longest = max(self._histogram, default=0)
        at = [sum(n for length, n in self._histogram.items() if length > i) / rounds for i in range(longest)]
        return {
            **{name: sums[name] for name in SUMMED},
            "mean_acceptance_length": sums["committed"] / rounds,
            "acceptance_rate": sums["accepted"] / sums["proposed"] if sums["proposed"] else None,
            "accepted_at": at,
            "rounds_per_plan": rounds / self.rows,
        }

    def _comparison(self) -> dict[str, Any]:
        if not self._compared["plans"]:
            return _unavailable("not asked for: --compare off")
        return {"with": "off", **self._compared, "differing_t0_s": self._differing[:NAMED_DIFFERENCES]}


def _unavailable(reason: str) -> dict[str, Any]:
    return {"unavailable": reason}
