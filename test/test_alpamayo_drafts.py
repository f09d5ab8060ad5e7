"""From drives of an Alpamayo to a draft beside its checkpoint, with the same commands as for nano."""

from pathlib import Path

import pytest
import torch
from draft_journey import check_draft_of_own_drives
from tiny_alpamayo import CASES, observation, write_checkpoint

from flatrope_planner.cli import main
from flatrope_planner.speculation.block_draft import BlockDraftConfig
from flatrope_planner.speculation.draft_checkpoint import load_draft, save_draft
from flatrope_planner.speculation.draft_config import DraftConfig
from flatrope_planner.speculation.rotary import RotaryScheme
from flatrope_planner.training.capture_command import header_of
from flatrope_planner.training.draft_kinds import Basis, DraftKind, DraftSizes, new_learner
from flatrope_planner.vla.targets import load_target


def test_from_drives_to_a_draft_that_drafts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = write_checkpoint(tmp_path / "alpamayo")
    check_draft_of_own_drives(checkpoint, tmp_path, observation(CASES["standing"]), monkeypatch)


@pytest.mark.parametrize("kind", [DraftKind.BLOCK, DraftKind.EAGLE3])
@pytest.mark.parametrize("scheme", RotaryScheme)
def test_a_draft_is_made_of_layers_like_its_target_s(tmp_path: Path, kind: DraftKind, scheme: RotaryScheme) -> None:
    target = load_target(write_checkpoint(tmp_path / "alpamayo"))
    learner = new_learner(DraftSizes(kind, scheme=scheme), header_of(target), Basis.of(target))
    config = learner.network.config
    assert isinstance(config, DraftConfig)
    # As `write_backbone` says.
    assert (config.heads, config.kv_heads, config.head_dim, config.intermediate) == (4, 2, 16, 96)
    assert config.mrope_section == ((4, 2, 2) if scheme is RotaryScheme.MROPE else None)


@pytest.mark.parametrize("layout", ["z-lab", "speculators"])
def test_a_portable_draft_goes_to_other_engines_and_comes_back(tmp_path: Path, layout: str) -> None:
    checkpoint = write_checkpoint(tmp_path / "alpamayo")
    target = load_target(checkpoint)
    torch.manual_seed(0)
    learner = new_learner(DraftSizes(portable=True), header_of(target), Basis.of(target))
    config = learner.network.config
    assert isinstance(config, BlockDraftConfig)
    assert config.mask_token == target.image_pad
    ours, theirs, back = (tmp_path / name for name in ("ours", "theirs", "back"))
    save_draft(ours, learner.network, target.fingerprint)
    common = ["--target", str(checkpoint)]
    assert main(["checkpoint", "convert", str(ours), str(theirs), "--to", layout, *common]) == 0
    assert main(["checkpoint", "convert", str(theirs), str(back), *common]) == 0
    first, second = (load_draft(folder, target.fingerprint, target.sizes).draft for folder in (ours, back))
    assert first.config == second.config
    for name, weight in first.state_dict().items():
        assert torch.equal(second.state_dict()[name], weight)
