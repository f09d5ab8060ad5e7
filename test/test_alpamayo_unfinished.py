"""Rationales that end without their stop token: the expert acts on what stands there, as in NVIDIA's own code.

`alpamayo_unfinished.npz` holds what that code (see `test_alpamayo`) made of these moments with a budget of six tokens,
and with some usual tokens as the end of a sequence in the backbone's configuration.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from test_alpamayo_exactness import bits
from tiny_alpamayo import TWO, Case, observation, write_checkpoint

from flatrope_planner.dimensions import CAMERA_NAMES
from flatrope_planner.speculation.decoder import DecodedRationale, Decoder
from flatrope_planner.speculation.rehearsed import Rehearsal, RehearsedDrafter
from flatrope_planner.vla.alpamayo.config import Release
from flatrope_planner.vla.alpamayo.target import AlpamayoTarget
from flatrope_planner.vla.request import VlaState
from flatrope_planner.vla.target import Running

RECORDED = np.load(Path(__file__).parent / "alpamayo_unfinished.npz")
BUDGET = 6
GUIDANCE = 1.5
MOMENTS = {
    "standing": Case((0.0, 0.0), 0, TWO),
    "reverse": Case((-3.0, 0.02), 1, TWO, "turn left"),
    "tightr": Case((3.0, -0.2), 3, TWO, "Turn right onto Oak Ave in 40m"),
    "guided": Case((8.0, 0.01), 9, TWO, "turn left"),
}
RUNS = [("budget", name) for name in MOMENTS] + [("eos", name) for name in MOMENTS if name != "reverse"]
Targets = dict[str, AlpamayoTarget]


@pytest.fixture(scope="module", params=list(Release), ids=lambda release: release.value)
def targets(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Targets:
    checkpoint = write_checkpoint(tmp_path_factory.mktemp("alpamayo"), request.param)
    running = Running(CAMERA_NAMES, device="cpu")
    short = AlpamayoTarget.load(checkpoint, running=running)
    assert short.eos_tokens == frozenset()
    short.token_budget = BUDGET
    path = checkpoint.parent / "backbone" / "config.json"
    content = json.loads(path.read_text())
    content["text_config"]["eos_token_id"] = RECORDED[f"{short.release.value}_eos"].tolist()
    path.write_text(json.dumps(content))
    return {"budget": short, "eos": AlpamayoTarget.load(checkpoint, running=running)}


def recorded(target: AlpamayoTarget, run: tuple[str, str], name: str) -> NDArray[Any]:
    found: NDArray[Any] = RECORDED[f"{target.release.value}_{run[0]}_{run[1]}_{name}"]
    return found


def written_by_nvidia(target: AlpamayoTarget, run: tuple[str, str]) -> list[int]:
    """Their text; where it has its stop token, theirs goes on for one more."""
    text: list[int] = recorded(target, run, "text").tolist()
    return text[: text.index(target.stop_token) + 1] if target.stop_token in text else text


def decode(target: AlpamayoTarget, name: str) -> DecodedRationale[VlaState]:
    return Decoder(target, None, 8).decode(target.prepare(observation(MOMENTS[name])))


@pytest.mark.parametrize("run", RUNS, ids="-".join)
def test_text_and_trajectory_are_theirs(targets: Targets, run: tuple[str, str]) -> None:
    target, name = targets[run[0]], run[1]
    decoded, text = decode(target, name), written_by_nvidia(target, run)
    assert list(decoded.token_ids) == text
    assert decoded.rationale.text == str(recorded(target, run, "cot"))
    assert decoded.rationale.complete == (text[-1] == target.stop_token)
    # The last token that a budget allows is never read, not even where it is the stop token.
    unread = not decoded.rationale.complete or len(text) == target.token_budget
    assert decoded.state.unread == unread
    assert decoded.state.length == len(target.prepare(observation(MOMENTS[name])).token_ids) + len(text) - unread
    torch.manual_seed(MOMENTS[name].seed)
    noise = torch.randn(1, 64, 2)
    if name == "guided" and target.release is Release.V1_5:
        plain = target.without_route(target.prepare(observation(MOMENTS[name])), decoded.token_ids)
        action = target.guided_actions(decoded.state, plain, noise, GUIDANCE)
    else:
        action = target.scaled_actions(decoded.state, noise)
        (trajectory,) = target.trajectories(decoded.state, noise)
        np.testing.assert_allclose(trajectory.position_m, recorded(target, run, "xyz"), atol=1e-4)
    np.testing.assert_allclose(action[0], recorded(target, run, "action"), atol=1e-5)


def test_the_recordings_hold_every_kind_of_end(targets: Targets) -> None:
    spent, eos = targets["budget"], targets["eos"]
    assert len(written_by_nvidia(eos, ("eos", "standing"))) == BUDGET < eos.token_budget
    assert written_by_nvidia(eos, ("eos", "standing"))[-1] in eos.eos_tokens
    at_last = written_by_nvidia(spent, ("budget", "reverse"))
    assert len(at_last) == BUDGET
    # R1 writes its stop token with the very last token of this budget.
    assert (at_last[-1] == spent.stop_token) == (spent.release is Release.R1)


@pytest.mark.parametrize("kind", ["budget", "eos"])
@pytest.mark.parametrize("branches", [1, 3])
def test_speculation_changes_no_bit_of_an_unfinished_text(targets: Targets, kind: str, branches: int) -> None:
    target = targets[kind]
    for name in ("standing", "tightr"):
        prompt = target.prepare(observation(MOMENTS[name]))
        plain = Decoder(target, None, 16).decode(prompt)
        for anticipates in (True, False):
            # It knows what its text would have gone on with, too.
            known = (*plain.token_ids, *plain.token_ids)
            rehearsal = Rehearsal(0.8 if branches > 1 else 1.0, branches, 1, anticipates)
            drafter = RehearsedDrafter(known, len(target.forbidden), rehearsal)
            guessed = Decoder(target, drafter, 16).decode(prompt)
            assert bits(guessed) == bits(plain)
            assert guessed.state.unread == plain.state.unread == 1
            # The last word is always the target's own.
            assert guessed.rationale.tokens[-1].source == "target"
