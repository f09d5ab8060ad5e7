"""Drafts on disk: every kind comes back, and whatever does not fit is refused in one line."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from flatrope_planner.errors import SetupError
from flatrope_planner.speculation.block_draft import BlockDraft, BlockDraftConfig
from flatrope_planner.speculation.checkpoints.layout import Draft
from flatrope_planner.speculation.draft_checkpoint import load_draft, save_draft
from flatrope_planner.speculation.eagle_draft import EagleDraft, EagleDraftConfig
from flatrope_planner.speculation.medusa import MedusaConfig, MedusaHeads
from flatrope_planner.speculation.rotary import RotaryScheme

TARGET = "0123abcd"
BLOCK = BlockDraftConfig(16, 40, (0, 2), block_size=4, heads=2, kv_heads=1, head_dim=12, intermediate=24)
EAGLE = EagleDraftConfig(16, 40, (0, 1, 2), heads=2, kv_heads=1, head_dim=12, intermediate=24)
MROPE = {"scheme": RotaryScheme.MROPE, "mrope_section": (2, 2, 2)}
# Known to the EAGLE-3 draft's own head: tokens 3, 5, 11 and 39.
OFFSET = torch.tensor([3, 4, 9, 36])


def filled(draft: Draft) -> Draft:
    """Weights that bfloat16 holds exactly."""
    torch.manual_seed(0)
    with torch.no_grad():
        for weight in draft.parameters():
            weight.copy_(torch.randn(weight.shape).to(torch.bfloat16))
        if isinstance(draft, EagleDraft) and draft.own_offset is not None:
            draft.own_offset.copy_(OFFSET)
    return draft.eval()


DRAFTS = {
    "block": lambda: BlockDraft(BLOCK),
    "block with M-RoPE": lambda: BlockDraft(replace(BLOCK, **MROPE)),
    "block without additions": lambda: BlockDraft(
        replace(BLOCK, feature_norm=False, predecessor_rank=0, mask_token=7, norm_eps=1e-5)
    ),
    "eagle": lambda: EagleDraft(EAGLE),
    "eagle with M-RoPE": lambda: EagleDraft(replace(EAGLE, **MROPE)),
    "eagle with a head": lambda: EagleDraft(replace(EAGLE, feature_norm=False, own_vocab_size=4)),
    "medusa": lambda: MedusaHeads(MedusaConfig(16, (2,), heads=3)),
}


@pytest.mark.parametrize("kind", DRAFTS)
def test_every_kind_comes_back(kind: str, tmp_path: Path) -> None:
    draft = filled(DRAFTS[kind]())
    save_draft(tmp_path / "draft", draft, TARGET)
    found = load_draft(tmp_path / "draft", TARGET)
    assert type(found.draft) is type(draft)
    assert (found.draft.config, found.fingerprint) == (draft.config, TARGET)
    want, got = draft.state_dict(), found.draft.state_dict()
    assert set(got) == set(want)
    assert all(torch.equal(got[name], want[name]) for name in want)


@pytest.mark.parametrize("kind", DRAFTS)
def test_another_targets_draft_is_refused(kind: str, tmp_path: Path) -> None:
    save_draft(tmp_path, DRAFTS[kind](), TARGET)
    with pytest.raises(SetupError, match="a draft for target 0123abcd, but the target is ffff"):
        load_draft(tmp_path, "ffff")
