"""What the page of a replay shows: paths as far as they are measured, lines that break, plans of then and now."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drives import Drive, replay, write_bag

from flatrope_planner.domain import Image
from flatrope_planner.evaluation.replay.compared_paths import compared_paths
from flatrope_planner.evaluation.replay.moment_picture import DRIVEN, PLANNED, drawn_into
from flatrope_planner.evaluation.replay.page import write_page
from flatrope_planner.evaluation.replay.page_moments import HEIGHT_PX, MARGIN_M, from_above, moment_card
from flatrope_planner.evaluation.replay.page_recorded import recorded_plans_section
from flatrope_planner.evaluation.replay.page_timeline import breaks_before
from flatrope_planner.evaluation.replay.summary import summary_of
from flatrope_planner.evaluation.report.pictures import Eye
from flatrope_planner.evaluation.report.svg import Chart
from flatrope_planner.planning.pose import Pose

# Points every 0.1 s: planned at 10 m/s, driven at 5 m/s.
PLANNED_M = [[1.0 * (i + 1), 0.0, 0.0] for i in range(64)]
DRIVEN_M = [[0.5 * (i + 1), 0.0] for i in range(64)]
ERRORS = {"ade_m": 7.75, "fde_m": 15.0, "final_longitudinal_m": 15.0, "final_lateral_m": 0.0}


def moment(known: int, horizon: str = "3s", error_m: float = 7.75) -> dict[str, Any]:
    """A moment after which `known` points were driven."""
    later: list[Any] = [None] * 3 + [[99.0, 0.0]] * max(0, 61 - known)
    return {
        "t0_s": 7.05,
        "horizon": horizon,
        "error_m": error_m,
        "errors": {horizon: {**ERRORS, "ade_m": error_m}},
        "position_m": PLANNED_M,
        "driven_m": [*DRIVEN_M[:known], *later][:64],
        "rationale": "Keep.",
        "calibrated": False,
        "jpeg": "",
    }


def test_paths_end_where_the_drive_is_no_longer_known() -> None:
    planned, driven = compared_paths(moment(40), "3s")
    # Point 30 is that after 3 s; 40 are known, and what comes after a gap is not.
    np.testing.assert_allclose(planned.measured_m[-1], [30.0, 0.0])
    np.testing.assert_allclose(driven.measured_m[-1], [15.0, 0.0])
    np.testing.assert_allclose(planned.beyond_m[[0, -1], 0], [30.0, 40.0])
    np.testing.assert_allclose(driven.beyond_m[[0, -1], 0], [15.0, 20.0])


def test_the_view_from_above_marks_the_end_of_the_horizon() -> None:
    view = from_above(moment(40))
    # From -2 m to 42 m.
    scale = HEIGHT_PX / (40.0 + 2 * MARGIN_M)
    dots = {style: float(y) for style, y in re.findall(r'<circle class="(\w+)" cx="[\d.]+" cy="([\d.]+)"', view)}
    assert dots == {
        "planned": pytest.approx(HEIGHT_PX - 32.0 * scale, abs=0.1),
        "driven": pytest.approx(HEIGHT_PX - 17.0 * scale, abs=0.1),
    }
    ends = {style: float(y) for style, y in re.findall(r'class="(\w+ beyond)" d="[^"]*,([\d.]+)"', view)}
    assert ends["planned beyond"] == pytest.approx(HEIGHT_PX - 42.0 * scale, abs=0.1)
    assert ends["driven beyond"] == pytest.approx(HEIGHT_PX - 22.0 * scale, abs=0.1)


def test_the_picture_shows_what_is_measured_strong_and_the_rest_pale() -> None:
    # 1.5 m up, looking ahead: x m ahead on the road are 150 + 800 * 1.5 / x px from the top.
    mount = Pose(0.0, 0.0, 1.5, np.array([-0.5, 0.5, -0.5, 0.5]))
    eye = Eye(np.array([[800.0, 0.0, 200.0], [0.0, 800.0, 150.0], [0.0, 0.0, 1.0]]), 400, mount)
    black: Image = np.zeros((300, 400, 3), np.uint8)
    drawn = drawn_into(black, {**moment(40), "position_m": [[0.5 * (i + 1), 0.0, 0.0] for i in range(64)]}, "3s", eye)

    def at(x_m: float) -> list[int]:
        return [int(value) for value in drawn[round(150 + 1200 / x_m), 200]]

    strong, pale, beyond = at(10.0), at(18.0), at(25.0)
    assert sum(strong) > 1.5 * sum(pale) > 0
    assert sum(beyond) == 0
    np.testing.assert_allclose(at(15.0), PLANNED, atol=6)
    beside = drawn_into(black, {**moment(40), "position_m": [[0.25 * (i + 1), 0.0, 0.0] for i in range(64)]}, "3s", eye)
    np.testing.assert_allclose(beside[round(150 + 1200 / 15.0), 200], DRIVEN, atol=6)


def test_only_moments_that_are_known_for_equally_long_stand_in_one_order(tmp_path: Path) -> None:
    folder = tmp_path / "drive"
    result = replay(write_bag(tmp_path / "bag", Drive(duration_s=4.0)), tmp_path / "out")
    (tmp_path / "out" / "bag").rename(folder)
    moments = [moment(64, "3s", 0.4), moment(25, "2s", 0.9), moment(64, "3s", 0.6)]
    (folder / "moments.json").write_text(json.dumps(moments))
    write_page(tmp_path / "report.html", summary_of([result], [folder], wall_s=1.0), [folder])
    page = (tmp_path / "report.html").read_text()
    found = re.findall(r"<h3>By ADE over ([^<]*)</h3>|ADE ([\d.]+) m, FDE", page)
    assert found == [
        ("3 s", ""),
        ("", "0.60"),
        ("", "0.40"),
        ("2 s, where the drive is known no longer", ""),
        ("", "0.90"),
    ]
    # In print nothing scrolls.
    assert re.search(r"@media print \{ \.words \{ max-height: none;", page)


def test_a_card_says_over_which_time() -> None:
    card = moment_card(moment(25, "2s"), "")
    assert "7.0 s: ADE 7.75 m, FDE 15.00 m over 2 s; then 15.00 m ahead and 0.00 m to the right" in card


def test_a_value_that_stands_alone_is_a_dot() -> None:
    chart = Chart((0.0, 10.0), (0.0, 1.0), "x", "y", width_px=1060, height_px=156)
    nan = np.nan
    chart.line(np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0]), np.array([1.0, nan, 0.0, 0.0, nan, 1.0]), "error")
    drawn = chart.svg()
    # 100 px a unit of x from 48 px on, 100 px a unit of y from 122 px up.
    assert '<path class="error" d="M248.0,122.0L348.0,122.0"/>' in drawn
    assert '<path class="error dot" d="M48.0,22.0h0M548.0,22.0h0"/>' in drawn
    lone = Chart((0.0, 10.0), (0.0, 1.0), "x", "y")
    lone.line(np.array([5.0]), np.array([0.5]), "error")
    assert lone.svg().count("h0") == 1


def plan(t0_s: float, driven_s: float = 6.4, drive: int = 0) -> dict[str, Any]:
    return {"t0_s": t0_s, "drive": drive, "driven_s": driven_s, "seen_s": 6.4}


@pytest.mark.parametrize(
    ("rows", "breaks"),
    [
        ([plan(0.0), plan(0.5), plan(1.0)], []),
        # A new drive.
        ([plan(0.0), plan(0.5), plan(1.0, drive=1)], [2]),
        # More than two intervals without plans.
        ([plan(0.0), plan(0.5), plan(1.0), plan(2.1), plan(2.6)], [3]),
        ([plan(0.0), plan(0.5), plan(1.0), plan(1.9), plan(2.4)], []),
        # The car leapt 3 s after the second plan; and 5 s apart, at the end of the plan nothing is known.
        ([plan(0.0), plan(5.0, 3.0), plan(10.0)], [2]),
        ([plan(0.0), plan(10.0), plan(20.0)], []),
        # The last future of a drive is not known, and needs not be.
        ([plan(0.0), plan(5.0), plan(10.0, 0.0)], []),
        ([plan(0.0)], []),
        ([], []),
    ],
)
def test_lines_break_where_the_drive_does(rows: list[dict[str, Any]], breaks: list[int]) -> None:
    assert breaks_before(rows) == breaks


def test_plans_of_then_and_now_stand_beside_each_other() -> None:
    horizons = ("1s", "2s", "3s", "4s", "6s", "full")
    same = {
        "plans": 3,
        "recorded_ade_m": {name: 1.0 + i for i, name in enumerate(horizons)},
        "replayed_ade_m": {**dict.fromkeys(horizons, 0.5), "full": None},
    }
    bags: list[dict[str, Any]] = [
        {"name": "a<b", "recorded_plans": {"plans": 4, "same_t0": same}},
        {"name": "other", "recorded_plans": {"plans": 7, "same_t0": {"plans": 0}}},
        {"name": "mute", "recorded_plans": {"unavailable": "no planner was at work"}},
        {"name": "broken", "error": "x"},
    ]
    section = recorded_plans_section(bags)
    rows = [re.sub(r"(<[^>]*>)+", "|", row) for row in section.split("<tr>")[2:]]
    assert rows[0] == "|a&lt;b|3|in the bag|1.00|2.00|3.00|4.00|5.00|6.00|"
    assert rows[1] == "|replayed|0.50|0.50|0.50|0.50|0.50|-|"
    assert rows[2].startswith("|other|0|none of the 7 is for the same moment: --at-recorded")
    assert len(rows) == 3
    assert recorded_plans_section(bags[2:]) == ""


def test_the_documentation_names_every_key_of_a_plan(tmp_path: Path) -> None:
    replay(write_bag(tmp_path / "bag", Drive(duration_s=4.0)), tmp_path / "out")
    row = json.loads((tmp_path / "out" / "bag" / "plans.jsonl").read_text().splitlines()[0])
    text = (Path(__file__).resolve().parents[1] / "docs" / "replay.md").read_text()
    section = text.partition("### plans.jsonl")[2].partition("### ")[0]
    first_cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    named = {name.partition(".")[0] for cell in first_cells for name in re.findall(r"`([^`]*)`", cell)}
    assert named == set(row)
    for key in ("errors", "speculation"):
        inner = next(iter(row["errors"].values())) if key == "errors" else row[key]
        (line,) = [line for line in section.splitlines() if line.startswith(f"| `{key}")]
        assert set(inner) <= set(re.findall(r"[a-z_]+", line)), key
