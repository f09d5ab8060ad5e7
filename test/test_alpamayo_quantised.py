"""Weights in eight bits. What needs torchao is tried where it is installed."""

import sys
from pathlib import Path

import pytest
import torch
from test_alpamayo_exactness import bits
from tiny_alpamayo import CASES, observation, write_checkpoint

from flatrope_planner.errors import InputError, SetupError
from flatrope_planner.speculation.candidates import Block, Candidates
from flatrope_planner.speculation.decoder import Decoder
from flatrope_planner.speculation.exactness import self_test
from flatrope_planner.speculation.rehearsed import Rehearsal, RehearsedDrafter
from flatrope_planner.vla.alpamayo.target import AlpamayoTarget
from flatrope_planner.vla.target import Running
from flatrope_planner.vla.targets import load_target

EIGHT_BITS = Running(("front_wide", "front_tele"), device="cpu", quantised=True)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("alpamayo"))


def test_without_the_library_one_line_says_what_to_install(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torchao.quantization", None)
    with pytest.raises(SetupError, match=r"precision int8 needs torchao, .*; pip install torchao$"):
        AlpamayoTarget.load(checkpoint, running=EIGHT_BITS)
    with pytest.raises(InputError, match=r"precision is 'int8', expected auto, .*: only alpamayo_r1 and alpamayo1_5"):
        load_target(None, running=Running(quantised=True))


def test_eight_bits_are_nearly_the_same_model_and_speculation_stays_exact(checkpoint: Path) -> None:
    pytest.importorskip("torchao")
    whole = AlpamayoTarget.load(checkpoint, running=Running(EIGHT_BITS.cameras, device="cpu"))
    target = AlpamayoTarget.load(checkpoint, running=EIGHT_BITS)
    # Drafts of the checkpoint are drafts of this one.
    assert target.fingerprint == target.tapping((1,)).fingerprint == whole.fingerprint
    for layer in target.vlm.model.language_model.layers:
        assert layer.mlp.up_proj.weight.qdata.dtype is torch.int8
        assert layer.input_layernorm.weight.dtype is torch.float32
    prompt = target.prepare(observation(CASES["standing"]))
    last = Block.of(prompt.token_ids[-1], Candidates())
    ours, theirs = (each.prefill(prompt, last)[1].block.logits[0] for each in (target, whole))
    assert not torch.equal(ours, theirs)
    assert torch.corrcoef(torch.stack([ours, theirs]))[0, 1] > 0.999
    target.token_budget = 20
    plain = Decoder(target, None, 8).decode(prompt)
    for right, branches in ((1.0, 1), (0.6, 3)):
        drafter = RehearsedDrafter(plain.token_ids, len(target.forbidden), Rehearsal(right, branches, 1))
        assert bits(Decoder(target, drafter, 8).decode(prompt)) == bits(plain)
    assert self_test(target, prompt, 9) == []
    (trajectory,) = target.act(plain.state, 3)
    assert trajectory.position_m.shape == (64, 3)
