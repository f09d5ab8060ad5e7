"""What a tick cost, as a SpeculationStats message."""

from dataclasses import dataclass

from std_msgs.msg import Header

from flatrope_planner.domain import Plan
from flatrope_planner.msg import SpeculationStats

STAGES = ("vision", "prefill", "reasoning", "draft", "verify", "action", "total")


@dataclass(frozen=True)
class TickRecord:
    """What the planner node knows about a tick beyond the plan itself."""

    # Publication time minus t0, ms of ROS time.
    observation_age_ms: float
    # Ticks planned and dropped since the start.
    ticks: int
    dropped_ticks: int
    # Deadlines missed and fallbacks published since the start.
    deadline_misses: int = 0
    fallbacks: int = 0


def statistics_message(plan: Plan, tick: TickRecord, header: Header) -> SpeculationStats:
    """The statistics of one tick; a stage that was not timed costs 0 ms."""
    speculation = plan.speculation
    stages = {f"{stage}_ms": float(plan.stage_ms.get(stage, 0.0)) for stage in STAGES}
    return SpeculationStats(
        header=header,
        rounds=int(speculation.rounds),
        proposed=int(speculation.proposed),
        accepted=int(speculation.accepted),
        committed=int(speculation.committed),
        prefill_proposed=int(speculation.prefill_proposed),
        prefill_accepted=int(speculation.prefill_accepted),
        mean_acceptance_length=float(speculation.mean_acceptance_length),
        acceptance_rate=float(speculation.acceptance_rate),
        accepted_at=list(speculation.accepted_at),
        acceptance_histogram=list(speculation.acceptance_histogram),
        drafter=speculation.drafter,
        observation_age_ms=float(tick.observation_age_ms),
        ticks=int(tick.ticks),
        dropped_ticks=int(tick.dropped_ticks),
        deadline_misses=int(tick.deadline_misses),
        fallbacks=int(tick.fallbacks),
        **stages,
    )
