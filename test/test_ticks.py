"""What a tick cost, as a message, compared whole."""

import numpy as np
from flatrope_planner.msg import SpeculationStats as StatsMessage

from flatrope_planner.conversion.stamps import to_header
from flatrope_planner.conversion.ticks import TickRecord, statistics_message
from flatrope_planner.dimensions import FUTURE_POINTS
from flatrope_planner.domain import Plan, Rationale, SpeculationStats, Trajectory


def plan(stats: SpeculationStats) -> Plan:
    zeros = np.zeros(FUTURE_POINTS)
    trajectory = Trajectory(np.zeros((FUTURE_POINTS, 3)), zeros, zeros, np.zeros((FUTURE_POINTS, 2)))
    stages = {"vision": 1.0, "prefill": 2.0, "reasoning": 4.0, "action": 8.0, "total": 16.0}
    return Plan(7, trajectory, Rationale("Go."), stats, stages)


def test_every_field_is_filled() -> None:
    header = to_header(7, "map")
    stats = SpeculationStats(4, 10, 6, 9, drafter="retrieval", acceptance_histogram=(1, 1, 1, 1))
    message = statistics_message(plan(stats), TickRecord(120.0, 5, 2, 3, 4), header)
    assert message == StatsMessage(
        header=header,
        rounds=4,
        proposed=10,
        accepted=6,
        committed=9,
        mean_acceptance_length=2.25,
        acceptance_rate=0.6,
        accepted_at=[3, 2, 1],
        acceptance_histogram=[1, 1, 1, 1],
        drafter="retrieval",
        vision_ms=1.0,
        prefill_ms=2.0,
        reasoning_ms=4.0,
        action_ms=8.0,
        total_ms=16.0,
        observation_age_ms=120.0,
        ticks=5,
        dropped_ticks=2,
        deadline_misses=3,
        fallbacks=4,
    )


def test_without_a_draft_nothing_is_divided_by_zero() -> None:
    message = statistics_message(plan(SpeculationStats(0, 0, 0, 0)), TickRecord(0.0, 1, 0), to_header(7, "map"))
    assert (message.mean_acceptance_length, message.acceptance_rate) == (0.0, 0.0)
