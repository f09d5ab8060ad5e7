"""Targets and drafts on a GPU: nothing is left behind in main memory, and plans are the same (see `pretended_gpu`)."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import tiny_alpamayo
import tiny_autovla
import torch
from draft_journey import check_draft_of_own_drives
from pretended_gpu import GPU, pretended_gpu

from flatrope_planner.domain import Observation, Plan
from flatrope_planner.planning.chance import Chance
from flatrope_planner.speculation import reasoner
from flatrope_planner.speculation.draft_checkpoint import save_draft
from flatrope_planner.speculation.rotary import RotaryScheme
from flatrope_planner.training.capture_command import header_of
from flatrope_planner.training.draft_kinds import Basis, DraftKind, DraftSizes, new_learner
from flatrope_planner.vla.alpamayo.config import Release
from flatrope_planner.vla.drafting import DrafterKind, SpeculationOptions
from flatrope_planner.vla.loading import planner_with
from flatrope_planner.vla.target import Running
from flatrope_planner.vla.targets import load_target


@dataclass(frozen=True)
class Case:
    """A checkpoint, and a moment to plan for."""

    write: Callable[[Path], Path]
    moment: Observation
    running: Running


def small(name: str) -> Observation:
    """A moment with few pictures: each operation is slow here."""
    return tiny_alpamayo.observation(replace(tiny_alpamayo.CASES[name], cameras=("front_wide",)))


def brief(folder: Path, release: Release = Release.R1) -> Path:
    """A checkpoint of short texts and few steps of its flow, for the same reason."""
    flow = f"{tiny_alpamayo.PACKAGES[release]}.diffusion.flow_matching.FlowMatching"
    diffusion = {"_target_": flow, "num_inference_steps": 2}
    return tiny_alpamayo.write_checkpoint(
        folder, release, changes={"tokens_per_future_traj": 12, "diffusion_cfg": diffusion}
    )


CASES = {
    "alpamayo_r1": Case(brief, small("fast"), Running()),
    "alpamayo1_5": Case(lambda folder: brief(folder, Release.V1_5), small("guided"), Running(guidance=2.0)),
    "autovla": Case(
        tiny_autovla.write_checkpoint,
        tiny_autovla.observation(tiny_autovla.CASES["fast"], ("front_wide",)),
        Running(("front_wide",)),
    ),
}
DRAFTS = {
    "flat": DraftSizes(layers=1),
    "mrope": DraftSizes(scheme=RotaryScheme.MROPE, layers=1, context_tokens=40),
    "eagle3": DraftSizes(DraftKind.EAGLE3),
    "medusa": DraftSizes(DraftKind.MEDUSA),
}


@pytest.fixture
def untested(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the self-test of a device, which writes many texts."""
    monkeypatch.setattr(reasoner, "self_test", lambda *_: [])


def drafts_of_nothing(checkpoint: Path) -> Path:
    """Drafts that have learnt nothing, beside a checkpoint."""
    target = load_target(checkpoint, running=Running(device="cpu"))
    torch.manual_seed(0)
    for name, sizes in DRAFTS.items():
        learner = new_learner(sizes, header_of(target), Basis.of(target))
        save_draft(checkpoint / "drafts" / name, learner.network, target.fingerprint)
    return checkpoint


def plan_on(device: str, checkpoint: Path, case: Case, options: SpeculationOptions, chance: Chance) -> Plan:
    """A plan of a short text."""
    with pretended_gpu():
        target = load_target(checkpoint, running=replace(case.running, device=device))
        assert target.device == (GPU if device == "auto" else torch.device("cpu"))
        target.token_budget = 6
        planner = planner_with(target, checkpoint, options)
        planner.chance = chance
        plan = planner.plan(case.moment)
        assert planner.health.problem == ""
        return plan


def check_same_plan(checkpoint: Path, case: Case, options: SpeculationOptions, chance: Chance) -> Plan:
    plain, there = (plan_on(device, checkpoint, case, options, chance) for device in ("cpu", "auto"))
    assert there.rationale == plain.rationale
    np.testing.assert_array_equal(there.trajectory.position_m, plain.trajectory.position_m)
    assert there.speculation.proposed == plain.speculation.proposed
    return there


def test_a_pretended_gpu_refuses_what_a_real_one_would() -> None:
    with pretended_gpu():
        there, here = torch.ones(3, device=GPU), torch.ones(3)
        assert (there + there.to(GPU) * 2.0).tolist() == [3.0, 3.0, 3.0]
        with pytest.raises(RuntimeError, match="on the same device"):
            there + here
        with pytest.raises(RuntimeError, match="on the same device"):
            torch.cat([here, there])
        with pytest.raises((RuntimeError, TypeError)):
            there.numpy()
        copy = there.cpu()
        there += 1.0
        assert copy.numpy().tolist() == [1.0, 1.0, 1.0]
        assert there.device == GPU
        assert there[torch.tensor([0])].tolist() == [2.0]


@pytest.mark.usefixtures("untested")
@pytest.mark.parametrize("name", CASES)
def test_plans_on_a_gpu_are_those_of_the_cpu(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    checkpoint = case.write(tmp_path / "checkpoint")
    drawn = Chance(seed=3, temperature=0.7, samples=2)
    check_same_plan(checkpoint, case, SpeculationOptions(DrafterKind.PROMPT_LOOKUP), drawn)


@pytest.mark.usefixtures("untested")
def test_every_kind_of_draft_goes_where_its_target_is(tmp_path: Path) -> None:
    case = CASES["alpamayo_r1"]
    checkpoint = drafts_of_nothing(case.write(tmp_path / "checkpoint"))
    for name in DRAFTS:
        options = SpeculationOptions(DrafterKind.HYBRID, checkpoint / "drafts" / name, nodes=12)
        assert check_same_plan(checkpoint, case, options, Chance()).speculation.proposed > 0


def test_a_draft_is_captured_trained_and_tested_on_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = brief(tmp_path / "checkpoint")
    with pretended_gpu():
        check_draft_of_own_drives(checkpoint, tmp_path, small("fast"), monkeypatch)
