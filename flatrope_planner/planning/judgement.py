"""What is said of a plan before it is published: good, or why not; and whether it does what it says."""

from dataclasses import dataclass

from flatrope_planner.domain import Plan
from flatrope_planner.planning.comfort import discomforts
from flatrope_planner.planning.consistency import Consistency, ConsistencyFinding, compare
from flatrope_planner.planning.driven_arc import EgoMoment
from flatrope_planner.planning.plan_validator import refusal

NOT_COMPARED = ConsistencyFinding(Consistency.UNKNOWN, "not compared with a rationale")


@dataclass(frozen=True)
class Judgement:
    """The judgement of what is published."""

    # Why the trajectory is a fallback instead of the target's own, in words; empty if it is the target's own.
    fallback_reason: str = ""
    # Whether the plan that the fallback stands in for is still being made.
    pending: bool = False
    finding: ConsistencyFinding = NOT_COMPARED
    comfort_exceeded: tuple[str, ...] = ()

    @property
    def is_fallback(self) -> bool:
        """Whether the trajectory is a fallback."""
        return bool(self.fallback_reason)


def judge(plan: Plan, ego: EgoMoment, *, refuse_inconsistent: bool = False) -> Judgement:
    """Judge a plan made for this ego; a refused one has the reason in `fallback_reason`."""
    if plan.t0_ns != ego.t0_ns:
        return Judgement(f"it was made for another time than the observation's: {plan.t0_ns} ns, not {ego.t0_ns} ns")
    reason = refusal(plan.trajectory, ego.motion)
    if reason:
        return Judgement(reason)
    finding = compare(plan.rationale, plan.trajectory, ego.motion)
    if refuse_inconsistent and finding.consistency is Consistency.INCONSISTENT:
        return Judgement(finding.reason, finding=finding)
    return Judgement(finding=finding, comfort_exceeded=discomforts(plan.trajectory, ego.motion))
