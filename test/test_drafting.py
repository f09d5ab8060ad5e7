"""Every kind of drafter for nano, found beside its weights; one that cannot be used does not keep it from planning."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_token_drafts import eagle
from tiny_nano import noise_observation, tiny_model
from tiny_weights import write_companions, write_weights

from flatrope_planner.domain import Plan
from flatrope_planner.errors import InputError
from flatrope_planner.speculation.draft_checkpoint import save_draft
from flatrope_planner.speculation.fingerprint import fingerprint
from flatrope_planner.vla.drafting import CORPUS_FILE, DRAFTS_FOLDER, FLATROPE, DrafterKind, SpeculationOptions
from flatrope_planner.vla.loading import VlaPlanner, load_planner, load_planner_and_twin
from flatrope_planner.vla.nano import NanoTarget
from flatrope_planner.vla.target import VlaTarget
from flatrope_planner.vla.targets import load_target

NAMES = {
    DrafterKind.NONE: "",
    DrafterKind.PROMPT_LOOKUP: "prompt-lookup",
    DrafterKind.RETRIEVAL: "retrieval",
    DrafterKind.NETWORK: "block-flat",
    DrafterKind.HYBRID: "hybrid-block-flat",
}


@pytest.fixture(scope="module", autouse=True)
def short_texts() -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NanoTarget, "token_budget", 12)
        yield


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shelf") / "nano"
    write_companions(folder, write_weights(folder))
    return folder


@pytest.fixture
def weights(shelf: Path, tmp_path: Path) -> Path:
    """A copy to spoil."""
    return Path(shutil.copytree(shelf, tmp_path / "nano"))


@pytest.fixture(scope="module")
def alone(shelf: Path) -> Plan:
    return load_planner(str(shelf), speculating(DrafterKind.NONE)).plan(noise_observation(0))


def speculating(kind: DrafterKind = DrafterKind.HYBRID, draft: Path | None = None) -> SpeculationOptions:
    return SpeculationOptions(kind, draft, nodes=7)


def same(plan: Plan, other: Plan) -> bool:
    equal_motion = np.array_equal(plan.trajectory.position_m, other.trajectory.position_m)
    return equal_motion and plan.rationale.text == other.rationale.text


@pytest.mark.parametrize("kind", DrafterKind)
def test_every_kind_plans_the_same(kind: DrafterKind, shelf: Path, alone: Plan) -> None:
    planner = load_planner(str(shelf), speculating(kind))
    plan = planner.plan(noise_observation(0))
    assert same(plan, alone)
    health = planner.health
    assert (health.drafter, health.problem, health.broken_promise) == (NAMES[kind], "", "")
    assert health.speculating == (kind is not DrafterKind.NONE)
    assert plan.speculation.drafter == NAMES[kind]
    # The corpus beside the weights holds this text: it is known before anything is read.
    knows = kind in (DrafterKind.RETRIEVAL, DrafterKind.HYBRID)
    assert (plan.speculation.prefill_accepted > 3) == knows
    if knows:
        assert plan.speculation.rounds < alone.speculation.rounds / 3
    # Networks are asked behind the first token only.
    if kind is DrafterKind.NETWORK:
        assert plan.speculation.prefill_proposed == 0
        assert plan.speculation.proposed > 0


@pytest.mark.parametrize("kind", [DrafterKind.NONE, DrafterKind.RETRIEVAL, DrafterKind.HYBRID])
def test_a_planner_and_its_twin_share_the_network_and_nothing_else(
    kind: DrafterKind, shelf: Path, alone: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[VlaTarget] = []

    def load_once(*arguments: Any, **named: Any) -> VlaTarget:
        assert not loaded
        loaded.append(load_target(*arguments, **named))
        return loaded[0]

    monkeypatch.setattr("flatrope_planner.vla.loading.load_target", load_once)
    planner, twin = load_planner_and_twin(str(shelf), speculating(kind))
    assert same(planner.plan(noise_observation(0)), alone)
    plan = twin.plan(noise_observation(0))
    assert same(plan, alone)
    assert (plan.speculation.proposed, twin.health.drafter, planner.health.drafter) == (0, "", NAMES[kind])
    mine, other = planner._target, twin._target
    assert isinstance(mine, NanoTarget)
    assert isinstance(other, NanoTarget)
    assert mine._model is other._model
    # What one has seen costs the other as much as if it had been alone.
    assert mine.vision_cache.misses == other.vision_cache.misses > 0


def test_a_draft_of_another_folder_and_kind_is_taken(shelf: Path, tmp_path: Path, alone: Plan) -> None:
    save_draft(tmp_path / "mine", eagle(), NanoTarget.load(shelf).fingerprint)
    planner = load_planner(str(shelf), speculating(DrafterKind.HYBRID, tmp_path / "mine"))
    assert same(planner.plan(noise_observation(0)), alone)
    assert (planner.health.drafter, planner.health.problem) == ("hybrid-eagle3-flat", "")


def test_a_draft_is_found_in_the_home_folder(
    shelf: Path, tmp_path: Path, alone: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_draft(tmp_path / "mine", eagle(), NanoTarget.load(shelf).fingerprint)
    monkeypatch.setenv("HOME", str(tmp_path))
    planner = load_planner(str(shelf), speculating(DrafterKind.HYBRID, Path("~/mine")))
    assert same(planner.plan(noise_observation(0)), alone)
    assert planner.health.problem == ""


def plans_alone(planner: VlaPlanner, alone: Plan) -> str:
    """Plans without a drafter; returns what it says about that."""
    before = planner.health
    assert same(planner.plan(noise_observation(0)), alone)
    health = planner.health
    assert before == health
    assert (health.drafter, health.speculating, health.broken_promise) == ("", False, "")
    assert health.problem.startswith("the target writes alone: ")
    return health.problem


def plans_with_earlier_texts(planner: VlaPlanner, alone: Plan) -> str:
    """Plans with the half of a hybrid that needs no training; returns what it says about that."""
    assert same(planner.plan(noise_observation(0)), alone)
    health = planner.health
    assert (health.drafter, health.speculating, health.broken_promise) == ("retrieval", True, "")
    assert health.problem.startswith("earlier texts draft alone: ")
    return health.problem


def test_without_a_draft_it_plans_and_names_the_folder(weights: Path, alone: Plan) -> None:
    shutil.rmtree(weights / DRAFTS_FOLDER)
    folder = weights / DRAFTS_FOLDER / FLATROPE
    for kind, plans in ((DrafterKind.NETWORK, plans_alone), (DrafterKind.HYBRID, plans_with_earlier_texts)):
        problem = plans(load_planner(str(weights), speculating(kind)), alone)
        assert f"{folder / 'config.json'}: no configuration of a draft (no such file)" in problem
        assert f"--out {folder}` trains one" in problem
    # Who needs none does not miss it.
    assert load_planner(str(weights), speculating(DrafterKind.RETRIEVAL)).health.problem == ""


def test_with_another_targets_draft_it_plans_and_names_both(weights: Path, tmp_path: Path, alone: Plan) -> None:
    theirs, mine = fingerprint(tiny_model(1).vlm), NanoTarget.load(weights).fingerprint
    save_draft(tmp_path / "theirs", eagle(), theirs)
    problem = plans_with_earlier_texts(load_planner(str(weights), speculating(draft=tmp_path / "theirs")), alone)
    assert f"a draft for target {theirs}, but the target is {mine}" in problem


def test_with_broken_files_it_plans_and_names_them(weights: Path, alone: Plan) -> None:
    (weights / CORPUS_FILE).write_text("[]")
    assert CORPUS_FILE in plans_alone(load_planner(str(weights), speculating(DrafterKind.RETRIEVAL)), alone)
    (weights / DRAFTS_FOLDER / FLATROPE / "model.safetensors").write_bytes(b"cheese")
    problem = plans_alone(load_planner(str(weights), speculating(DrafterKind.NETWORK)), alone)
    assert "model.safetensors" in problem
    assert "\n" not in problem


@pytest.mark.parametrize("kind", [DrafterKind.RETRIEVAL, DrafterKind.HYBRID])
def test_with_the_corpus_of_another_vocabulary_the_target_writes_alone(
    weights: Path, kind: DrafterKind, alone: Plan
) -> None:
    (weights / CORPUS_FILE).write_text('{"rationales": [[1, 1000000, 2]]}')
    planner = load_planner(str(weights), SpeculationOptions(kind))
    assert f"{weights / CORPUS_FILE}: token 1000000" in planner.health.problem
    assert planner.plan(noise_observation(0)).rationale.text == alone.rationale.text


def test_of_two_faults_both_are_named(weights: Path, alone: Plan) -> None:
    (weights / CORPUS_FILE).write_text("[]")
    shutil.rmtree(weights / DRAFTS_FOLDER)
    problem = plans_alone(load_planner(str(weights), speculating()), alone)
    assert f"{weights / DRAFTS_FOLDER / FLATROPE / 'config.json'}: no configuration of a draft" in problem
    assert f"; {weights / CORPUS_FILE}: " in problem


def test_without_a_corpus_the_drive_is_drafted_from_until_it_ends(weights: Path) -> None:
    (weights / CORPUS_FILE).unlink()
    planner = load_planner(str(weights), speculating(DrafterKind.RETRIEVAL))

    def knows() -> bool:
        return planner.plan(noise_observation(0)).speculation.prefill_proposed > 0

    assert (knows(), knows()) == (False, True)
    planner.reset()
    assert (knows(), knows()) == (False, True)


def test_an_unknown_target_is_refused() -> None:
    with pytest.raises(InputError, match="no target 'mega': no such folder"):
        load_planner("mega")
