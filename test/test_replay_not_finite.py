"""Numbers that are none, of a planner or of plans in the bag, are null with a reason or refused: never in a mean."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drives import CheapCore, Drive, Sent, header, make, replay, task_of, write_bag
from stand_ins import straight

from flatrope_planner.domain import Trajectory
from flatrope_planner.evaluation.replay.bag_replay import ReplayOptions
from flatrope_planner.evaluation.replay.contestants import Contestants
from flatrope_planner.evaluation.replay.page import write_page
from flatrope_planner.evaluation.replay.rows import NOT_FINITE
from flatrope_planner.evaluation.replay.summary import summary_of

TOPIC = "/planner/output/trajectory"
# Plans at 1.5, 2.0 ... 10.0 s, straight ahead at 5 m/s where 6 m/s are driven.
ALL_PLANS = 18


def only_json(file: Path) -> list[Any]:
    """The values in the lines of a file; JSON knows no NaN."""

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    return [json.loads(line, parse_constant=refuse) for line in file.read_text().splitlines()]


def broken(**fields: Any) -> Trajectory:
    return replace(straight(), **fields)


@pytest.mark.parametrize(
    "trajectory",
    [
        broken(position_m=np.full((64, 3), math.nan)),
        broken(yaw_rad=np.full(64, math.inf)),
        broken(speed_mps=np.full(64, math.nan)),
        broken(action=np.full((64, 2), math.nan)),
    ],
)
def test_a_plan_of_no_numbers_has_no_metrics(tmp_path: Path, trajectory: Trajectory) -> None:
    bag = write_bag(tmp_path / "drive", Drive())
    result = replay(bag, tmp_path / "out", Contestants(CheapCore(trajectory)))
    assert (result["plans"], result["refused"]) == (ALL_PLANS, ALL_PLANS)
    for horizon in result["errors"].values():
        assert (horizon["plans"], horizon["ade_m"], horizon["miss_rate"]) == (0, None, None)
        assert horizon["unavailable"] == NOT_FINITE
    assert result["comfort"] == {"unavailable": NOT_FINITE}
    assert "unavailable" in result["extended_comfort"]
    rows = only_json(tmp_path / "out" / "drive" / "plans.jsonl")
    assert len(rows) == ALL_PLANS
    task = task_of(bag, tmp_path / "out")
    write_page(tmp_path / "page.html", summary_of([result], [task.folder], wall_s=1.0), [task.folder])


def test_a_sample_of_no_numbers_is_none_of_the_samples(tmp_path: Path) -> None:
    class Sampling(CheapCore):
        def plan_with_samples(self, observation: Any, seed: int, samples: int) -> Any:
            plan, drawn = super().plan_with_samples(observation, seed, samples)
            return plan, (broken(position_m=np.full((64, 3), math.nan)), *drawn)

    result = replay(write_bag(tmp_path / "drive", Drive()), tmp_path / "out", Contestants(Sampling(), samples=3))
    # At 5.0, 5.5 and 6.0 m/s: the last one drives as it was driven.
    assert result["least_errors"]["1s"]["min_ade_m"] == pytest.approx(0.0, abs=1e-6)


def pose(x: float, w: float = 1.0) -> Any:
    turn = make("geometry_msgs/Quaternion", x=0.0, y=0.0, z=0.0, w=w)
    return make("geometry_msgs/Pose", position=make("geometry_msgs/Point", x=x, y=0.0, z=0.0), orientation=turn)


def point(t0_s: float, step: int) -> Any:
    numbers = dict.fromkeys(("speed", "acceleration", "curvature", "yaw_rate"), 0.0)
    time = make("builtin_interfaces/Duration", sec=step // 10, nanosec=step % 10 * 100_000_000)
    place = pose(6.0 * t0_s + 0.5 * step)
    return make("flatrope_planner/PlannedPoint", pose=place, time_from_start=time, **numbers)


def recorded(t0_s: float, change: Callable[[Any], object] = lambda message: None) -> Sent:
    """A plan straight ahead at 5 m/s, published 0.1 s after its t0."""
    words = {"status_reason": "", "target": "nano", "consistency_reason": "", "comfort_exceeded": []}
    message = make(
        "flatrope_planner/PlannedTrajectory",
        header=header(t0_s, "map"),
        ego_pose=pose(6.0 * t0_s),
        points=[point(t0_s, step) for step in range(1, 65)],
        status=0,
        pending=False,
        consistency=0,
        **words,
    )
    change(message)
    return Sent(t0_s + 0.1, TOPIC, message)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda plan: setattr(plan.points[5].pose.position, "x", math.nan), "with a pose beyond"),
        (lambda plan: setattr(plan.points[5].pose.position, "y", 1e308), "with a pose beyond"),
        (lambda plan: setattr(plan.points[5].pose.orientation, "w", 0.0), "a quaternion that is no unit one"),
        (lambda plan: setattr(plan.ego_pose.position, "x", math.inf), "with a pose beyond"),
        (lambda plan: plan.points.reverse(), "whose times do not rise from its t0 on"),
        (lambda plan: setattr(plan.points[0].time_from_start, "nanosec", 0), "whose times do not rise from its t0 on"),
        (lambda plan: setattr(plan.header, "stamp", header(-100.0, "").stamp), "without a time stamp"),
        (lambda plan: setattr(plan.header, "frame_id", "odom"), "a plan in 'odom', the odometry is in 'map'"),
    ],
)
@pytest.mark.parametrize("at_recorded", [False, True])
def test_a_recorded_plan_of_no_use_costs_that_plan(
    tmp_path: Path, change: Callable[[Any], object], complaint: str, at_recorded: bool
) -> None:
    plans = recorded(2.0), recorded(2.5, change), recorded(3.0)
    bag = write_bag(tmp_path / "drive", Drive(more=plans))
    result = replay(bag, tmp_path / "out", options=ReplayOptions(0.5, at_recorded=at_recorded))
    assert result["rejected"] == {TOPIC: 1}
    assert complaint in result["missing"][0]
    assert result["recorded_plans"]["plans"] == 2
    assert result["recorded_plans"]["errors"]["3s"]["ade_m"] == pytest.approx(1.55)


def test_a_recorded_plan_of_a_time_that_never_comes_keeps_no_other_waiting(tmp_path: Path) -> None:
    far = recorded(2.0, lambda plan: setattr(plan.header.stamp, "sec", 2**31 - 1))
    bag = write_bag(tmp_path / "drive", Drive(duration_s=60.0, more=(far, recorded(3.0))))
    errors = replay(bag, tmp_path / "out")["recorded_plans"]["errors"]
    # What was driven so long ago is not known any more when the bag ends.
    assert (errors["6s"]["plans"], errors["6s"]["ade_m"]) == (1, pytest.approx(3.05))
