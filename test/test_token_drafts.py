"""EAGLE-3 and Medusa: what is trained is what is drafted, texts are learnt, and none is ever changed."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_nano import noise_observation, tiny_model, tiny_tokenizer

from flatrope_planner.speculation.block_drafter import Shape
from flatrope_planner.speculation.decoder import Decoder
from flatrope_planner.speculation.eagle_draft import EagleDraft, EagleDraftConfig
from flatrope_planner.speculation.eagle_drafter import EagleDrafter
from flatrope_planner.speculation.medusa import MedusaConfig, MedusaDrafter, MedusaHeads
from flatrope_planner.speculation.rotary import RotaryScheme
from flatrope_planner.training.capture import capture
from flatrope_planner.training.draft import DraftTrainer, DraftTrainingOptions
from flatrope_planner.training.eagle_learner import EagleLearner
from flatrope_planner.training.medusa_learner import MedusaLearner
from flatrope_planner.training.objective import IGNORED
from flatrope_planner.training.traces import Trace, write_drive
from flatrope_planner.vla.nano import NanoTarget

TAPS = (0, 2)
MODEL = tiny_model()
TARGET = NanoTarget(MODEL, tiny_tokenizer(), TAPS)
TARGET.token_budget = 12
PARTS = TARGET.parts


def eagle(scheme: RotaryScheme = RotaryScheme.FLAT) -> EagleDraft:
    torch.manual_seed(0)
    section = (2, 2, 2) if scheme is RotaryScheme.MROPE else None
    sizes = EagleDraftConfig(48, len(TARGET.forbidden), TAPS, heads=4, head_dim=12, intermediate=48)
    draft = EagleDraft(replace(sizes, scheme=scheme, mrope_section=section))
    with torch.no_grad():
        for weight in draft.parameters():
            if weight.ndim >= 2:
                weight.copy_(torch.randn(weight.shape) * 0.2)
    return draft


def medusa() -> MedusaHeads:
    torch.manual_seed(0)
    heads = MedusaHeads(MedusaConfig(48, TAPS, heads=3))
    with torch.no_grad():
        for weight in heads.parameters():
            weight.copy_(torch.randn(weight.shape) * 0.1)
    return heads


@pytest.fixture(scope="module")
def traces() -> list[Trace]:
    with torch.no_grad():
        return list(capture(TARGET, (TARGET.prepare(noise_observation(seed)) for seed in range(3))))


@pytest.mark.parametrize("scheme", list(RotaryScheme))
def test_eagle_drafts_what_it_is_trained_on(scheme: RotaryScheme, traces: list[Trace]) -> None:
    draft, trace = eagle(scheme), traces[0]
    text, whole = trace.tokens[trace.prompt :].tolist(), trace.tapped.float()
    learner = EagleLearner(draft, PARTS)
    batch = learner.batch([trace, traces[1]], np.random.default_rng(0))
    with torch.no_grad():
        wanted = learner.logits(batch)[0].softmax(-1)
    drafter = EagleDrafter(draft, PARTS)
    drafter.begin(TARGET.prepare(noise_observation(0)), whole[:, : trace.prompt - 1])
    for place, token in enumerate(text[:-1]):
        guesses = drafter.guesses()
        for step in range(min(3, len(text) - place)):
            path = tuple(text[place : place + step])
            got = {guess.token: guess.probability for guess in guesses(path)}
            for guessed, probability in got.items():
                assert probability == pytest.approx(float(wanted[place, step, guessed]), rel=1e-3, abs=1e-6)
            assert batch.truth.labels[0, place, step] == text[place + step]
        drafter.observe([token], whole[:, trace.prompt - 1 + place : trace.prompt + place])


def test_medusa_drafts_what_it_is_trained_on(traces: list[Trace]) -> None:
    heads, trace = medusa(), traces[1]
    text, whole = trace.tokens[trace.prompt :].tolist(), trace.tapped.float()
    learner = MedusaLearner(heads, PARTS)
    batch = learner.batch([trace], np.random.default_rng(0))
    with torch.no_grad():
        wanted = PARTS.logits(PARTS.normed(heads(batch.states))).argmax(-1)
    drafter = MedusaDrafter(heads, PARTS)
    drafter.begin(TARGET.prepare(noise_observation(1)), whole[:, : trace.prompt - 1])
    assert drafter.propose(7, 7).tokens == ()
    for place, token in enumerate(text[:-1]):
        drafter.observe([token], whole[:, trace.prompt - 1 + place : trace.prompt + place])
        assert drafter.propose(7, 7).tokens == tuple(wanted[place].tolist())
        following = [*text[place + 1 :], IGNORED, IGNORED, IGNORED][:3]
        assert batch.truth.labels[place].tolist() == following


@pytest.mark.parametrize("kind", ["eagle", "medusa"])
def test_texts_are_learnt_and_never_changed(kind: str, tmp_path: Path, traces: list[Trace]) -> None:
    for number in range(13):
        write_drive(tmp_path / f"{number:03d}.safetensors", traces)
    options = DraftTrainingOptions(tmp_path, tmp_path / "work", steps=60, batch=3, peak_rate=1e-2)
    network = eagle() if kind == "eagle" else medusa()
    learner: Any = EagleLearner(network, PARTS) if isinstance(network, EagleDraft) else MedusaLearner(network, PARTS)
    trainer: DraftTrainer[Any] = DraftTrainer(options, learner)
    before = trainer.score()
    trainer.run(lambda: False)
    assert trainer.score() > before + 0.5
    for seed in range(3):
        prompt = TARGET.prepare(noise_observation(seed))
        plain = Decoder(TARGET, None, 16).decode(prompt)
        for shape in Shape:
            drafter = (
                EagleDrafter(network, PARTS, shape)
                if isinstance(network, EagleDraft)
                else MedusaDrafter(network, PARTS, shape)
            )
            drafted = Decoder(TARGET, drafter, 16).decode(prompt)
            assert drafted.token_ids == plain.token_ids
            assert drafted.speculation.rounds < plain.speculation.rounds
