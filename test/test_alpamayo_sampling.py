"""Drawn rationales, several trajectories and guidance, as a planner of an Alpamayo is asked for them."""

from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_alpamayo import CASES, observation, write_checkpoint

from flatrope_planner.dimensions import CAMERA_NAMES
from flatrope_planner.errors import InputError
from flatrope_planner.planning.chance import Chance
from flatrope_planner.planning.consensus import most_central
from flatrope_planner.speculation.decoder import Decoder
from flatrope_planner.speculation.sampling import Sampling
from flatrope_planner.vla.alpamayo.config import Release
from flatrope_planner.vla.alpamayo.target import AlpamayoTarget
from flatrope_planner.vla.drafting import DrafterKind, SpeculationOptions
from flatrope_planner.vla.loading import VlaPlanner, load_planner
from flatrope_planner.vla.target import Running
from flatrope_planner.vla.targets import load_target

CHANCE = Chance(seed=5, temperature=0.8, top_p=0.9, samples=4)
GUIDED = observation(CASES["guided"])


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("alpamayo"), Release.V1_5)


def planner(
    checkpoint: Path, chance: Chance | None = None, guidance: float = 1.0, drafter: DrafterKind = DrafterKind.NONE
) -> VlaPlanner:
    running = Running(CAMERA_NAMES, device="cpu", guidance=guidance)
    loaded = load_planner(str(checkpoint), SpeculationOptions(drafter, nodes=7), running)
    loaded.chance = chance or Chance()
    return loaded


def test_a_drawn_plan_is_the_drawn_text_and_the_most_central_of_its_trajectories(checkpoint: Path) -> None:
    plan = planner(checkpoint, CHANCE).plan(GUIDED)
    target = load_target(checkpoint, running=Running(CAMERA_NAMES, device="cpu"))
    seed = CHANCE.seed_at(GUIDED.t0_ns)
    assert seed is not None
    drawn = Decoder(target, None, 8, sampling=Sampling(seed, 0.8, 0.9)).decode(target.prepare(GUIDED))
    assert [token.text for token in plan.rationale.tokens] == [token.text for token in drawn.rationale.tokens]
    trajectories = target.act(drawn.state, seed, 4)
    assert len({trajectory.position_m.tobytes() for trajectory in trajectories}) == 4
    assert plan.trajectory.position_m.tolist() == most_central(trajectories).position_m.tolist()
    greedy = planner(checkpoint).plan(GUIDED)
    assert [token.text for token in greedy.rationale.tokens] != [token.text for token in plan.rationale.tokens]


def test_equal_observations_give_equal_drawn_plans_whoever_proposes(checkpoint: Path) -> None:
    speaking = planner(checkpoint, CHANCE, drafter=DrafterKind.PROMPT_LOOKUP)
    plans = [each.plan(GUIDED) for each in (planner(checkpoint, CHANCE), speaking, speaking)]
    assert len({tuple(token.text for token in plan.rationale.tokens) for plan in plans}) == 1
    assert len({plan.trajectory.position_m.tobytes() for plan in plans}) == 1


def test_all_trajectories_share_one_reading_of_the_prompt(checkpoint: Path) -> None:
    target = load_target(checkpoint, running=Running(CAMERA_NAMES, device="cpu"))
    rows = list[int]()
    hook = target.vlm.get_decoder().register_forward_pre_hook(
        lambda _, __, given: rows.append(given["inputs_embeds"].shape[1]), with_kwargs=True
    )
    try:
        prompt = target.prepare(GUIDED)
        decoded = Decoder(target, None, 8).decode(prompt)
        read = len(rows)
        target.act(decoded.state, 1, 16)
    finally:
        hook.remove()
    assert len(rows) == read
    assert sum(count >= len(prompt.token_ids) for count in rows) == 1


def test_guidance_bends_the_plan_and_leaves_the_text(checkpoint: Path) -> None:
    plain, guided = planner(checkpoint).plan(GUIDED), planner(checkpoint, guidance=3.0).plan(GUIDED)
    assert [token.text for token in guided.rationale.tokens] == [token.text for token in plain.rationale.tokens]
    assert np.abs(guided.trajectory.position_m - plain.trajectory.position_m).max() > 1e-3
    target = AlpamayoTarget.load(checkpoint, running=Running(CAMERA_NAMES, device="cpu"))
    prompt = target.prepare(GUIDED)
    decoded = Decoder(target, None, 8).decode(prompt)
    without = target.without_route(prompt, decoded.token_ids)
    action = target.guided_actions(decoded.state, without, torch.zeros(1, 64, 2), 3.0)
    target.guidance = 3.0
    target.tapping((1,)).guide(decoded.state, prompt, decoded.token_ids)
    (trajectory,) = target.trajectories(decoded.state, torch.zeros(1, 64, 2))
    np.testing.assert_allclose(trajectory.position_m, guided.trajectory.position_m, atol=1e-4)
    speed = trajectory.speed_mps[-1]
    # Speeds are the sum of the accelerations that the guided flow says.
    space = target.model.action_space
    expected = space.motion(action, decoded.state.speed_mps.to(action).expand(1))[0].speed_mps[-1]
    assert speed == pytest.approx(float(expected), abs=1e-4)


def test_without_a_command_there_is_nothing_to_be_guided_by(checkpoint: Path) -> None:
    moment = observation(CASES["fast"])
    plain, guided = planner(checkpoint).plan(moment), planner(checkpoint, guidance=3.0).plan(moment)
    assert guided.trajectory.position_m.tolist() == plain.trajectory.position_m.tolist()


def test_targets_without_guidance_refuse_it_before_they_are_loaded(tmp_path: Path) -> None:
    checkpoint = write_checkpoint(tmp_path / "r1")
    (checkpoint / "model.safetensors").unlink()
    with pytest.raises(InputError, match="guidance is 2, expected 1: alpamayo_r1 cannot be guided, alpamayo1_5 can"):
        load_target(checkpoint, running=Running(CAMERA_NAMES, device="cpu", guidance=2.0))
    with pytest.raises(InputError, match="guidance is 2, expected 1: flatrope_nano cannot be guided"):
        load_target(None, running=Running(guidance=2.0))
