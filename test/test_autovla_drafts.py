"""From drives of an AutoVLA to a draft beside its checkpoint, with the same commands as for nano."""

from pathlib import Path

import pytest
from draft_journey import check_draft_of_own_drives
from tiny_autovla import CASES, observation, write_checkpoint

from flatrope_planner.speculation.block_draft import BlockDraft, BlockDraftConfig
from flatrope_planner.speculation.draft_checkpoint import save_draft
from flatrope_planner.vla.autovla import target as autovla_target
from flatrope_planner.vla.drafting import SpeculationOptions
from flatrope_planner.vla.loading import load_planner
from flatrope_planner.vla.targets import load_target


def test_from_drives_to_a_draft_that_drafts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(autovla_target, "TOKEN_BUDGET", 12)
    checkpoint = write_checkpoint(tmp_path / "autovla")
    check_draft_of_own_drives(checkpoint, tmp_path, observation(CASES["standing"]), monkeypatch)


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
    planner = load_planner(str(tmp_path / "one"), SpeculationOptions(draft=tmp_path / "draft"))
    expected = f"a draft for target {other.fingerprint}, but the target is {one.fingerprint}; train one for it"
    assert planner.health.problem == f"earlier texts draft alone: {tmp_path / 'draft'}: {expected}"
    assert (
        "earlier texts draft alone"
        not in load_planner(str(tmp_path / "other"), SpeculationOptions(draft=tmp_path / "draft")).health.problem
    )
