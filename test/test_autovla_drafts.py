"""From drives of an AutoVLA to a draft beside its checkpoint, with the same commands as for nano."""

from pathlib import Path

import pytest
from tiny_autovla import CASES, observation, write_checkpoint

from flatrope_planner.cli import main
from flatrope_planner.simulation.world import Family
from flatrope_planner.speculation.block_draft import BlockDraft, BlockDraftConfig
from flatrope_planner.speculation.draft_checkpoint import save_draft
from flatrope_planner.training import capture_command
from flatrope_planner.training.traces import write_header
from flatrope_planner.vla.autovla import target as autovla_target
from flatrope_planner.vla.drafting import DrafterKind, SpeculationOptions
from flatrope_planner.vla.loading import load_planner
from flatrope_planner.vla.targets import load_target


def test_from_drives_to_a_draft_that_drafts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture_command, "TRAINED_FAMILIES", (Family.CURVE,))
    monkeypatch.setattr(autovla_target, "TOKEN_BUDGET", 12)
    checkpoint, traces = write_checkpoint(tmp_path / "autovla"), tmp_path / "traces"
    options = capture_command.CaptureOptions(traces, checkpoint, episodes=2, jobs=1)
    write_header(traces, capture_command.header_of(load_target(checkpoint)))
    for seed in range(2):
        capture_command._capture(capture_command._Drive(Family.CURVE, capture_command.FIRST_SEED + seed, options))
    assert len(list(traces.glob("*.safetensors"))) == 2
    draft = checkpoint / "drafts" / "flatrope-8"
    train = ["train", "draft", "--traces", str(traces), "--weights", str(checkpoint), "--work", str(tmp_path / "work")]
    assert main([*train, "--out", str(draft), "--steps", "2", "--block-size", "8"]) == 0
    assert main(["checkpoint", "inspect", str(draft), "--weights", str(checkpoint)]) == 0
    plans = []
    for kind in (DrafterKind.NONE, DrafterKind.HYBRID):
        planner = load_planner(str(checkpoint), None, SpeculationOptions(kind))
        plans.append(planner.plan(observation(CASES["standing"])))
        assert planner.health.problem == ""
    alone, drafted = plans
    assert drafted.speculation.proposed > 0
    assert [token.text for token in drafted.rationale.tokens] == [token.text for token in alone.rationale.tokens]
    assert drafted.trajectory.position_m.tolist() == alone.trajectory.position_m.tolist()


def test_a_draft_of_another_checkpoint_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(autovla_target, "TOKEN_BUDGET", 12)
    one, other = (load_target(write_checkpoint(tmp_path / name, seed)) for name, seed in (("one", 8), ("other", 9)))
    assert one.draft_layers == (1, 2, 3)
    config = BlockDraftConfig(
        hidden=one.sizes.hidden,
        intermediate=96,
        heads=4,
        kv_heads=2,
        head_dim=16,
        tapped_layers=one.draft_layers,
        vocab_size=one.sizes.vocab_size,
    )
    save_draft(tmp_path / "draft", BlockDraft(config), other.fingerprint)
    planner = load_planner(str(tmp_path / "one"), None, SpeculationOptions(draft=tmp_path / "draft"))
    expected = f"a draft for target {other.fingerprint}, but the target is {one.fingerprint}; train one for it"
    assert planner.health.problem == f"the target writes alone: {tmp_path / 'draft'}: {expected}"
    assert (
        "the target writes alone"
        not in load_planner(str(tmp_path / "other"), None, SpeculationOptions(draft=tmp_path / "draft")).health.problem
    )
