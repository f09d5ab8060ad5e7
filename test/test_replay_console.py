"""What a replay says in the terminal when all is done."""

from pathlib import Path
from typing import Any

from drives import CheapCore, Drive, Sent, ahead, odometry_message, replay, write_bag
from stand_ins import straight

from flatrope_planner.domain import SpeculationHealth
from flatrope_planner.evaluation.replay.console import describe
from flatrope_planner.evaluation.replay.contestants import Contestants


def told(result: dict[str, Any]) -> list[str]:
    """The lines about a bag."""
    summary = {"bags": [result], "run": {"bags": {result["name"]: result["run"]}}}
    return describe(summary, Path("out")).splitlines()[:-3]


def test_what_was_planned_and_from_what(tmp_path: Path) -> None:
    short, topics = told(replay(write_bag(tmp_path / "short", Drive(duration_s=2.6)), tmp_path / "out"))
    assert short == "short: 3 plans, no ADE@3s, 2.50 tokens a round"
    assert topics.startswith("  took front_wide from /sensing/front_wide/image_raw, front_tele from ")
    drive, _ = told(replay(write_bag(tmp_path / "drive", Drive()), tmp_path / "out"))
    # Planned at 5, driven at 6 m/s: 0.1 to 3 m off.
    assert drive == "drive: 18 plans, ADE@3s 1.55 m, 2.50 tokens a round"


def test_odometry_that_was_not_taken_is_named(tmp_path: Path) -> None:
    other = Sent(1.0, "/gps/odom", odometry_message(1.0, ahead(6.0)))
    result = replay(write_bag(tmp_path / "drive", Drive(duration_s=4.0, more=(other,))), tmp_path / "out")
    assert result["topics"]["other_odometry"] == ["/gps/odom"]
    assert told(result)[1].endswith(", odometry from /localization/kinematic_state (and not /gps/odom)")


def test_the_comparison_has_a_verdict(tmp_path: Path) -> None:
    bag = write_bag(tmp_path / "drive", Drive(duration_s=4.0))
    slow, other = CheapCore(), CheapCore(straight(4.0))
    lines = told(replay(bag, tmp_path / "out", Contestants(CheapCore(), plain=slow)))
    # All stages take the same in `CheapCore`.
    assert lines[2:] == [
        "  against no speculation: 6 of 6 plans identical; reasoning 1.00, whole plans 1.00 times as fast"
    ]
    lines = told(replay(bag, tmp_path / "out", Contestants(CheapCore(), plain=other)))
    assert lines[2].startswith("  against no speculation: 0 of 6 plans identical; ")


def test_problems_of_the_planner_are_told(tmp_path: Path) -> None:
    core = CheapCore()
    core.health = SpeculationHealth(
        "network", problem="the draft is hardly ever right", broken_promise="a text differs"
    )
    lines = told(replay(write_bag(tmp_path / "drive", Drive(duration_s=4.0)), tmp_path / "out", Contestants(core)))
    assert lines[2:] == ["  problem: a text differs", "draft:   the draft is hardly ever right"]


def test_cameras_that_may_be_others_are_told(tmp_path: Path) -> None:
    result = replay(write_bag(tmp_path / "drive", Drive(duration_s=4.0)), tmp_path / "out")
    lines = told({**result, "missing": ["a plan"], "warnings": ["two cameras show the same"]})
    assert lines[2:] == ["  missing: a plan", "  warning: two cameras show the same"]
