"""A draft's whole way: drives are captured, a draft is trained on them, and it drafts what its target writes."""

from pathlib import Path

import pytest

from flatrope_planner.cli import main
from flatrope_planner.domain import Observation
from flatrope_planner.simulation.world import Family
from flatrope_planner.training import capture_command
from flatrope_planner.training.traces import write_header
from flatrope_planner.vla.drafting import DrafterKind, SpeculationOptions
from flatrope_planner.vla.loading import load_planner
from flatrope_planner.vla.targets import load_target


def check_draft_of_own_drives(
    checkpoint: Path, tmp_path: Path, observed: Observation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two drives and two steps make a draft that proposes and changes nothing."""
    monkeypatch.setattr(capture_command, "TRAINED_FAMILIES", (Family.CURVE,))
    traces = tmp_path / "traces"
    options = capture_command.CaptureOptions(traces, str(checkpoint), episodes=2, jobs=1)
    write_header(traces, capture_command.header_of(load_target(checkpoint)))
    for seed in range(2):
        capture_command._capture(capture_command._Drive(Family.CURVE, capture_command.FIRST_SEED + seed, options))
    assert len(list(traces.glob("*.safetensors"))) == 2
    draft = checkpoint / "drafts" / "flatrope-8"
    train = ["train", "draft", "--traces", str(traces), "--target", str(checkpoint), "--work", str(tmp_path / "work")]
    assert main([*train, "--out", str(draft), "--steps", "2", "--block-size", "8"]) == 0
    assert main(["checkpoint", "inspect", str(draft), "--target", str(checkpoint)]) == 0
    plans = []
    for kind in (DrafterKind.NONE, DrafterKind.HYBRID):
        planner = load_planner(str(checkpoint), SpeculationOptions(kind))
        plans.append(planner.plan(observed))
        assert planner.health.problem == ""
    alone, drafted = plans
    assert drafted.speculation.proposed > 0
    assert [token.text for token in drafted.rationale.tokens] == [token.text for token in alone.rationale.tokens]
    assert drafted.trajectory.position_m.tolist() == alone.trajectory.position_m.tolist()
