"""The block draft: geometry, context, training on traces, and what it proposes."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_nano import noise_observation, tiny_model, tiny_tokenizer

from flatrope_planner.errors import InputError, SetupError
from flatrope_planner.speculation.block_draft import BlockDraft, BlockDraftConfig
from flatrope_planner.speculation.block_drafter import BlockDrafter, Shape
from flatrope_planner.speculation.decoder import Decoder
from flatrope_planner.speculation.draft_checkpoint import load_draft, save_draft
from flatrope_planner.speculation.fingerprint import fingerprint
from flatrope_planner.speculation.rotary import DraftRotary, RotaryScheme
from flatrope_planner.training.block_batches import block_batch
from flatrope_planner.training.block_learner import BlockLearner
from flatrope_planner.training.capture import capture, trace_of
from flatrope_planner.training.draft import DraftTrainer, DraftTrainingOptions
from flatrope_planner.training.draft_scoring import DraftLoss
from flatrope_planner.training.objective import IGNORED
from flatrope_planner.training.traces import Trace, TraceHeader, read_drive, read_header, write_drive, write_header
from flatrope_planner.vla.nano import NanoTarget

TAPS = (0, 2)
MODEL = tiny_model()
TARGET = NanoTarget(MODEL, tiny_tokenizer(), TAPS)
TARGET.token_budget = 12
PARTS = TARGET.parts


def config(scheme: RotaryScheme = RotaryScheme.FLAT, block_size: int = 4) -> BlockDraftConfig:
    section = (2, 2, 2) if scheme is RotaryScheme.MROPE else None
    sizes = BlockDraftConfig(
        48,
        len(TARGET.forbidden),
        TAPS,
        block_size=block_size,
        heads=4,
        head_dim=12,
        intermediate=48,
        predecessor_rank=4,
    )
    return replace(sizes, scheme=scheme, mrope_section=section)


def new_draft(scheme: RotaryScheme = RotaryScheme.FLAT, block_size: int = 4) -> BlockDraft:
    torch.manual_seed(0)
    draft = BlockDraft(config(scheme, block_size))
    with torch.no_grad():
        for weight in draft.parameters():
            if weight.ndim >= 2:
                weight.copy_(torch.randn(weight.shape) * 0.2)
    return draft


@pytest.fixture(scope="module")
def traces() -> list[Trace]:
    with torch.no_grad():
        return list(capture(TARGET, (TARGET.prepare(noise_observation(seed)) for seed in range(3))))


def test_flat_positions_tell_patches_apart_where_the_targets_hardly_do() -> None:
    index = torch.arange(300)
    rows, columns = index // 14, index % 14
    grid = torch.stack([torch.zeros_like(index), rows, columns])
    flat = DraftRotary(RotaryScheme.FLAT, 12, 1e4)(index, grid)[0]
    theirs = DraftRotary(RotaryScheme.MROPE, 12, 1e4, (2, 2, 2))(index, grid)[0]
    # One step to the right turns every pair in a line, and only the pairs of the width on the grid.
    assert ((flat[1:] - flat[:-1]).abs() > 1e-9).any(0).all()
    turned = ((theirs[1:14] - theirs[:13]).abs() > 1e-9).any(0)
    assert turned.tolist() == [False, False, True, False, False, True] * 2


def test_mrope_positions_are_the_targets() -> None:
    rotary = MODEL.vlm.model.language_model.rotary_emb
    positions = torch.randint(0, 50, (3, 1, 20), generator=torch.Generator().manual_seed(0))
    want = rotary(torch.zeros(1), positions)
    got = DraftRotary(RotaryScheme.MROPE, 12, 1000.0, (2, 2, 2))(torch.arange(20)[None], positions)
    torch.testing.assert_close(got[0], want[0])
    torch.testing.assert_close(got[1], want[1])


@pytest.mark.parametrize("scheme", list(RotaryScheme))
def test_drafting_step_by_step_is_what_was_trained(scheme: RotaryScheme, traces: list[Trace]) -> None:
    """The drafter's growing context and training's mask are two roads to the same logits."""
    draft = new_draft(scheme)
    trace = traces[0]
    prompt = TARGET.prepare(noise_observation(0))
    text = trace.tokens[trace.prompt :].tolist()
    drafter = BlockDrafter(draft, PARTS)
    whole = trace.tapped.float()
    batch = block_batch([trace], 4, np.random.default_rng(0))
    with torch.no_grad():
        wanted = BlockLearner(draft, PARTS).logits(batch)[0]
    drafter.begin(prompt, whole[:, : trace.prompt - 1])
    for place, token in enumerate(text[:-1]):
        anchors = (batch.block.index[0].view(-1, 4)[:, 0] == trace.prompt - 1 + place).nonzero().flatten()
        if len(anchors):
            guesses = drafter.guesses()
            got = guesses._logits + draft.predecessor_logits(batch.before[0, anchors[0]])
            known = batch.truth.labels[0, anchors[0]] != IGNORED
            torch.testing.assert_close(got[known], wanted[anchors[0]][known], atol=1e-4, rtol=1e-4)
        drafter.observe([token], whole[:, trace.prompt - 1 + place : trace.prompt + place])


def test_a_window_keeps_what_is_pinned(traces: list[Trace]) -> None:
    trace = traces[0]
    batch = block_batch([trace], 4, np.random.default_rng(0), context_tokens=5)
    seen = batch.mask[0, 0, 0] == 0.0
    context = seen[: len(trace.tokens) - 1].nonzero().flatten().tolist()
    assert context == [*trace.pinned.tolist(), *range(trace.prompt - 5, trace.prompt)]
    assert seen[len(trace.tokens) - 1 :].sum() == 4


def test_labels_are_what_follows_the_anchor(traces: list[Trace]) -> None:
    batch = block_batch(traces, 4, np.random.default_rng(1))
    for row, trace in enumerate(traces):
        tokens = [*trace.tokens.tolist(), *[IGNORED] * 4]
        first = batch.block.index[row].view(-1, 4)[:, 0].tolist()
        assert first[0] == trace.prompt
        for anchor, labels in zip(first, batch.truth.labels[row].tolist(), strict=True):
            assert labels == tokens[anchor + 1 : anchor + 4]
        # The target's likeliest token is the one it wrote.
        known = batch.truth.labels[row] != IGNORED
        assert (batch.truth.likeliest[row, ..., 0] == batch.truth.labels[row])[known].all()


@pytest.mark.parametrize("kind", list(DraftLoss))
def test_a_draft_learns_the_targets_texts_and_never_changes_them(
    kind: DraftLoss, tmp_path: Path, traces: list[Trace]
) -> None:
    for number in range(13):
        write_drive(tmp_path / f"{number:03d}.safetensors", traces)
    options = DraftTrainingOptions(tmp_path, tmp_path / "work", steps=160, batch=3, peak_rate=5e-3, loss=kind)
    learner = BlockLearner(new_draft(), PARTS)
    trainer = DraftTrainer(options, learner)
    before = trainer.score()
    trainer.run(lambda: False)
    assert trainer.score() > before + 0.5
    drafter = BlockDrafter(learner.network, PARTS)
    for seed in range(3):
        prompt = TARGET.prepare(noise_observation(seed))
        plain = Decoder(TARGET, None, 8).decode(prompt)
        for shape in Shape:
            drafter = BlockDrafter(learner.network, PARTS, shape)
            assert Decoder(TARGET, drafter, 8).decode(prompt).token_ids == plain.token_ids


def reached(counted: Iterator[int], stop: int) -> bool:
    return next(counted) >= stop


def test_an_interrupted_run_ends_like_an_uninterrupted_one(tmp_path: Path, traces: list[Trace]) -> None:
    for number in range(13):
        write_drive(tmp_path / f"{number:03d}.safetensors", traces)

    def trained(work: Path, *stops: int) -> dict[str, torch.Tensor]:
        for stop in stops:
            options = DraftTrainingOptions(tmp_path, work, steps=6, batch=2)
            trainer = DraftTrainer(options, BlockLearner(new_draft(), PARTS))
            trainer.run(partial(reached, count(), stop))
        assert trainer.finished
        return trainer.optimiser.average

    whole, halves = trained(tmp_path / "a", 100), trained(tmp_path / "b", 2, 100)
    assert all(torch.equal(whole[name], halves[name]) for name in whole)


def first_token_only(trace: Trace) -> Trace:
    """As if the target had ended its text at once."""
    length = trace.prompt + 1
    return Trace(
        trace.tokens[:length].clone(),
        trace.prompt,
        trace.positions[:, :length].clone(),
        trace.tapped[:, : length - 1].clone(),
        trace.pinned.clone(),
        trace.likeliest[:1].clone(),
        trace.log_probability[:1].clone(),
    )


def test_texts_of_one_token_teach_nothing(tmp_path: Path, traces: list[Trace]) -> None:
    short = [first_token_only(trace) for trace in traces]
    learner, options = BlockLearner(new_draft(), PARTS), DraftTrainingOptions(tmp_path, tmp_path / "work", batch=2)
    for number in range(3):
        write_drive(tmp_path / f"{number}.safetensors", short)
    with pytest.raises(InputError, match="no text to score with has more than one token, expected some that go on"):
        DraftTrainer(options, learner)
    write_drive(tmp_path / "0.safetensors", [*short, traces[0]])
    with pytest.raises(InputError, match="no text to train with has more than one token"):
        DraftTrainer(options, learner)
    write_drive(tmp_path / "1.safetensors", [*short, *traces])
    trainer = DraftTrainer(options, learner)
    # Two batches are scored; in the first nothing is guessed.
    assert trainer.score() >= 1.0
    found = learner.score(learner.batch(short, np.random.default_rng(0)), DraftLoss.KL)
    assert float(found.loss.detach()) == 0.0


def test_traces_come_back_and_belong_to_one_target(tmp_path: Path, traces: list[Trace]) -> None:
    write_drive(tmp_path / "a.safetensors", traces)
    (first, *_) = read_drive(tmp_path / "a.safetensors")
    assert torch.equal(first.tokens, traces[0].tokens.int())
    torch.testing.assert_close(first.tapped.float(), traces[0].tapped, atol=0.05, rtol=0.01)
    header = TraceHeader("ab", 48, 100, TAPS, (2, 2, 2), 1e3)
    write_header(tmp_path, header)
    assert read_header(tmp_path) == header
    with pytest.raises(InputError, match="another target"):
        write_header(tmp_path, TraceHeader("cd", 48, 100, TAPS, (2, 2, 2), 1e3))
    with pytest.raises(InputError, match="flatrope capture"):
        read_header(tmp_path / "nothing")


def test_tapped_states_of_a_trace_are_those_that_decoding_shows(traces: list[Trace]) -> None:
    class Listener(BlockDrafter):
        heard: list[torch.Tensor]

        def begin(self, prompt: object, tapped: torch.Tensor) -> None:
            self.heard = [tapped]
            super().begin(prompt, tapped)  # type: ignore[arg-type]

        def observe(self, tokens: object, tapped: torch.Tensor) -> None:
            self.heard.append(tapped)
            super().observe(tokens, tapped)  # type: ignore[arg-type]

    listener = Listener(new_draft(), PARTS)
    prompt = TARGET.prepare(noise_observation(1))
    decoded = Decoder(TARGET, listener, 8).decode(prompt)
    trace = trace_of(TARGET, prompt, decoded.token_ids)
    heard = torch.cat(listener.heard, dim=1)
    torch.testing.assert_close(heard, trace.tapped[:, : heard.shape[1]], atol=1e-4, rtol=1e-3)


def test_a_draft_comes_back_and_only_for_its_target(tmp_path: Path) -> None:
    draft = new_draft(RotaryScheme.MROPE)
    mine = fingerprint(MODEL.vlm)
    assert fingerprint(tiny_model(1).vlm) != mine
    save_draft(tmp_path, draft, mine)
    loaded = load_draft(tmp_path, mine)
    assert loaded.draft.config == draft.config
    for (name, want), got in zip(draft.named_parameters(), loaded.draft.parameters(), strict=True):
        assert torch.equal(want.to(torch.bfloat16).float(), got), name
    with pytest.raises(SetupError, match="but the target is 0123"):
        load_draft(tmp_path, "0123")
    with pytest.raises(SetupError, match="flatrope train draft"):
        load_draft(tmp_path / "nothing", mine)


def test_a_window_comes_with_the_draft_and_holds_while_drafting(tmp_path: Path, traces: list[Trace]) -> None:
    trace, prompt = traces[0], TARGET.prepare(noise_observation(0))
    windowed = replace(config(), context_tokens=5)
    torch.manual_seed(0)
    save_draft(tmp_path, BlockDraft(windowed), TARGET.fingerprint)
    draft = load_draft(tmp_path, TARGET.fingerprint).draft
    assert isinstance(draft, BlockDraft)
    assert draft.config == windowed
    assert (BlockLearner(draft, PARTS).batch([trace], np.random.default_rng(0)).mask[0, 0, 0] == 0.0).sum() == (
        len(trace.pinned) + 5 + 4
    )
    drafter = BlockDrafter(draft, PARTS)
    drafter.begin(prompt, trace.tapped[:, : trace.prompt - 1].float())
    drafter.observe([1], trace.tapped[:, trace.prompt - 1 : trace.prompt].float())
    # The window of the prompt, and what has been read since.
    assert drafter._context[0][0].shape[2] == len(trace.pinned) + 5 + 1
