"""Training: the stream of samples, batches, the loop and its resumption."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, pairwise, takewhile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tiny_nano import SENTENCES, SIZES, arc, noise_picture, tiny_model, tiny_tokenizer
from training_samples import some_sights, some_situation

from flatrope_planner.domain import Decision
from flatrope_planner.errors import InputError
from flatrope_planner.training.augmentation import Look, apply_look, draw_look
from flatrope_planner.training.checkpoint import load_checkpoint, save_checkpoint
from flatrope_planner.training.collation import Collator
from flatrope_planner.training.export import export
from flatrope_planner.training.held_out import score
from flatrope_planner.training.objective import IGNORED, Batch, losses
from flatrope_planner.training.optimisation import learning_rate
from flatrope_planner.training.options import TargetTrainingOptions
from flatrope_planner.training.prefetching import Prefetcher
from flatrope_planner.training.samples import TrainingSample, shard_path, write_shard
from flatrope_planner.training.stream import SampleStream
from flatrope_planner.training.target import TargetTrainer
from flatrope_planner.training.teaching import Teacher
from flatrope_planner.vla.config import NanoConfig
from flatrope_planner.vla.history_tokens import encode_history
from flatrope_planner.vla.nano import NanoTarget
from flatrope_planner.vla.pictures import encode_picture

TOKENIZER = tiny_tokenizer()
CONFIG = NanoConfig(TOKENIZER.size, **{**SIZES, "action_std": (2.0, 0.1)})  # type: ignore[arg-type]
TEACHER = Teacher(CONFIG)


def episode(seed: int, length: int) -> list[TrainingSample]:
    """The same scene all along: what is said and done depends on the seed."""
    pictures = [encode_picture(noise_picture(100 * seed + i)) for i in range(2 * length + 2)]
    kind = seed % len(SENTENCES)
    return [
        TrainingSample(
            pictures=(pictures[2 * i], pictures[2 * i + 2], pictures[2 * i + 1], pictures[2 * i + 3]),
            history_position_m=arc(4.0 + seed, 0.0).position_m,
            history_rotation=arc(4.0 + seed, 0.0).rotation,
            rationale=SENTENCES[kind],
            decision=(Decision.KEEP, Decision.STOP, Decision.ACCELERATE)[kind],
            action=np.tile([[0.0, -3.0, 1.0][kind], 0.0], (64, 1)),
            position_m=np.zeros((64, 3)),
            family="lead",
            seed=seed,
            time_s=0.5 * i,
            sights=tuple(some_sights(seed) for _ in range(4)),
            situation=some_situation(seed),
        )
        for i in range(length)
    ]


@pytest.fixture
def options(tmp_path: Path) -> TargetTrainingOptions:
    made = TargetTrainingOptions(
        tmp_path, tmp_path / "out", steps=5, seeing_steps=1, clips_per_batch=2, flow_draws=2, peak_rate=1e-2
    )
    for seed in range(4):
        write_shard(shard_path(made.samples, "lead", seed), episode(seed, 6))
    return made


def stops_after(steps: int) -> Iterator[bool]:
    yield from [False] * steps
    while True:
        yield True


def run(trainer: TargetTrainer, steps: int) -> None:
    answers = stops_after(steps)
    trainer.run(lambda: next(answers))


def rationale_loss(trainer: TargetTrainer, batch: Batch) -> float:
    with torch.no_grad():
        return float(losses(trainer.model, TEACHER, batch, 1, torch.Generator().manual_seed(0)).rationale)


def keys(samples: list[TrainingSample]) -> list[tuple[int, float]]:
    return [(sample.seed, sample.time_s) for sample in samples]


def test_an_epoch_holds_every_sample_once_in_clips(options: TargetTrainingOptions) -> None:
    stream = SampleStream(options.work, clips_per_batch=3, seed=1)
    items = list(islice(stream.batches(stream.start()), 6))
    first = [item for item in items if item.after.epoch == 0]
    seen = [key for item in first for key in keys(item.samples)]
    assert sorted(seen) == [(seed, 0.5 * i) for seed in range(4) for i in range(6)]
    following = sum(a[0] == b[0] and b[1] == a[1] + 0.5 for a, b in pairwise(seen))
    assert following >= 12


def test_stream_goes_on_where_it_stopped_even_if_shards_were_added(options: TargetTrainingOptions) -> None:
    stream = SampleStream(options.work, clips_per_batch=2, seed=1)
    items = list(islice(stream.batches(stream.start()), 5))
    epoch = [item for item in items if item.after.epoch == 0]
    write_shard(shard_path(options.samples, "lead", 9), episode(9, 6))
    resumed = SampleStream(options.work, clips_per_batch=2, seed=1).batches(epoch[1].after)
    rest = [next(resumed) for _ in epoch[2:]]
    assert [keys(item.samples) for item in rest] == [keys(item.samples) for item in epoch[2:]]
    assert "samples/lead-00000009.npz" in next(resumed).after.shards


def test_practice_begins_a_new_epoch_and_comes_several_times(options: TargetTrainingOptions) -> None:
    stream = SampleStream(options.work, clips_per_batch=2, seed=1)
    begun = next(stream.batches(stream.start())).after
    assert stream.with_practice(begun) is begun
    write_shard(shard_path(options.practice, "lead", 30), episode(30, 6))
    anew = stream.with_practice(begun)
    assert (anew.epoch, anew.batches) == (1, 0)
    assert stream.with_practice(anew) is anew
    epoch = list(takewhile(lambda item: item.after.epoch == 1, stream.batches(anew)))
    assert keys([sample for item in epoch for sample in item.samples]).count((30, 0.5)) == 3


def test_an_empty_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no training samples"):
        SampleStream(tmp_path, 2, 0).start()


def test_batch_holds_each_picture_once_and_what_each_sample_shows(options: TargetTrainingOptions) -> None:
    samples = episode(1, 3)
    batch = Collator(CONFIG, TOKENIZER).collate(samples)
    assert batch.pictures.shape == (8, 160, 448, 3)
    error = batch.pictures[batch.picture_index[2, 1]].int() - torch.from_numpy(noise_picture(106)).int()
    assert error.abs().float().mean() < 6.0
    assert batch.ids.shape[1] % 8 == 0


def test_labels_are_the_answer_with_its_end_marks_and_nothing_else() -> None:
    sample = episode(0, 1)[0]
    batch = Collator(CONFIG, TOKENIZER).collate([sample, replace(sample, rationale="Stop.")])
    answer = [*TOKENIZER.encode(SENTENCES[0]), TOKENIZER.cot_end, TOKENIZER.future_start]
    labels = batch.labels[0]
    assert labels[labels != IGNORED].tolist() == answer
    end = int(batch.length[0])
    assert labels[end - len(answer) : end].tolist() == batch.ids[0, end - len(answer) : end].tolist() == answer
    assert batch.ids[0, : end - len(answer)].tolist().count(TOKENIZER.image_pad) == 280
    bins = [i + TOKENIZER.history_offset for i in encode_history(sample.history_position_m).tolist()]
    assert all(token in batch.ids[0].tolist() for token in bins)
    assert int(batch.positions[0, 1, int(batch.length[1]) - 1]) == int(batch.length[1]) - 1 - 224


def test_padding_does_not_change_the_losses() -> None:
    model, collator = tiny_model(), Collator(CONFIG, TOKENIZER)
    short = replace(episode(0, 1)[0], rationale="Stop.")
    alone = losses(model, TEACHER, collator.collate([short]), 1, torch.Generator().manual_seed(0))
    long = Collator(CONFIG, TOKENIZER)
    batch = long.collate([short, replace(short, rationale=SENTENCES[1] * 3)])
    padded = replace(
        batch,
        **{
            name: getattr(batch, name)[:1]
            for name in ("picture_index", "ids", "labels", "prompt_length", "length", "rope_delta", "action")
        },
        positions=batch.positions[:, :1],
        lesson=replace(batch.lesson, present=batch.lesson.present[:1], value=batch.lesson.value[:1]),
    )
    together = losses(model, TEACHER, padded, 1, torch.Generator().manual_seed(0))
    torch.testing.assert_close(together.rationale, alone.rationale, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(together.action, alone.action, atol=1e-4, rtol=1e-4)


def test_the_action_teaches_the_target_through_its_keys_and_values() -> None:
    model = tiny_model()
    batch = Collator(CONFIG, TOKENIZER).collate(episode(0, 1))
    losses(model, TEACHER, batch, 1, torch.Generator().manual_seed(0)).action.backward()  # type: ignore[no-untyped-call]
    for part in (model.vlm.model.visual.patch_embed.proj, model.vlm.model.language_model.layers[0].self_attn.k_proj):
        assert part.weight.grad.abs().max() > 0.0
    # The last layer's queries read nothing that the expert sees.
    assert model.vlm.lm_head.weight.grad is None


def test_looks_keep_the_scene_and_differ_between_drives() -> None:
    picture = noise_picture(3)
    rng = np.random.default_rng(4)
    seen = [apply_look(picture, draw_look(rng), rng) for _ in range(12)]
    likeness = [np.corrcoef(picture.ravel(), each.ravel())[0, 1] for each in seen]
    assert min(likeness) > 0.95
    assert len({int(each.mean()) for each in seen}) > 5


def test_noise_is_on_all_channels_and_differs_from_picture_to_picture() -> None:
    grey = np.full((160, 448, 3), 128, dtype=np.uint8)
    look = Look(np.repeat(np.arange(256, dtype=np.uint8)[:, None, None], 3, axis=2), noise=4.0)
    rng = np.random.default_rng(0)
    first, second = apply_look(grey, look, rng).astype(float), apply_look(grey, look, rng).astype(float)
    np.testing.assert_allclose(first.std((0, 1)), 4.0, atol=0.1)
    np.testing.assert_allclose(first.mean((0, 1)), 128.0, atol=0.1)
    assert abs(np.corrcoef(first.ravel(), second.ravel())[0, 1]) < 0.02


def test_loss_falls_and_an_interrupted_run_ends_like_an_uninterrupted_one(options: TargetTrainingOptions) -> None:
    whole = TargetTrainer(options, CONFIG, TOKENIZER)
    batch = Collator(CONFIG, TOKENIZER).collate(episode(0, 2))
    before = rationale_loss(whole, batch)
    run(whole, 100)
    assert whole.finished
    assert rationale_loss(whole, batch) < 0.9 * before

    halves = replace(options, work=options.work / "halves")
    halves.samples.parent.mkdir()
    halves.samples.symlink_to(options.samples)
    run(TargetTrainer(halves, CONFIG, TOKENIZER), 2)
    second = TargetTrainer(halves, CONFIG, TOKENIZER)
    assert second.optimiser.step_count == 2
    run(second, 100)
    for (name, want), got in zip(whole.model.named_parameters(), second.model.parameters(), strict=True):
        assert torch.equal(want, got), name
    assert all(torch.equal(whole.optimiser.average[n], second.optimiser.average[n]) for n in whole.optimiser.average)


def test_exported_weights_drive_a_target(options: TargetTrainingOptions) -> None:
    model = tiny_model()
    weights = {name: value.detach() for name, value in model.named_parameters()}
    export(options.out, weights, model.config, TOKENIZER, {"training steps": 8})
    stored = load_file(options.out / "model.safetensors")
    assert {value.dtype for value in stored.values()} == {torch.bfloat16}
    assert NanoTarget.load(options.out).observation_spec.cameras == ("front_wide", "front_tele")
    card = (options.out / "README.md").read_text(encoding="utf-8")
    assert "280 visual tokens" in card
    assert "- training steps: 8" in card


def test_score_knows_right_from_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    model, collator = tiny_model(), Collator(CONFIG, TOKENIZER)
    word = TOKENIZER.encode("Accelerate")[0]
    monkeypatch.setattr(
        model,
        "logits",
        lambda hidden: torch.nn.functional.one_hot(torch.full(hidden.shape[:-1], word), TOKENIZER.size).float(),
    )
    samples = [episode(1, 1)[0], episode(1, 2)[1], episode(2, 1)[0], episode(0, 1)[0]]
    assert [sample.decision.value for sample in samples] == ["stop", "stop", "accelerate", "keep"]
    found = score(model, TOKENIZER, collator, samples)
    assert found.decision_accuracy == 0.25
    assert found.ade_3s_m > 0.0


def test_learning_rate_rises_twice_then_falls() -> None:
    every = [learning_rate(step, 200, 1200, 1.0) for step in range(1200)]
    assert (every[0], every[19], every[199]) == (0.05, 1.0, 1.0)
    rates = every[200:]
    assert rates[0] == 0.01
    assert rates[99] == 1.0
    assert rates[:100] == sorted(rates[:100])
    assert rates[100:] == sorted(rates[100:], reverse=True)
    assert rates[-1] == pytest.approx(0.02, abs=1e-3)


def test_checkpoint_is_replaced_whole_and_damage_is_named(tmp_path: Path) -> None:
    assert load_checkpoint(tmp_path) is None
    save_checkpoint(tmp_path, {"step": 1, "w": torch.ones(2)})
    save_checkpoint(tmp_path, {"step": 2, "w": torch.zeros(2)})
    state = load_checkpoint(tmp_path)
    assert state is not None
    assert state["step"] == 2
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint.pt"]
    (tmp_path / "checkpoint.pt").write_bytes(b"PK broken")
    with pytest.raises(InputError, match=r"checkpoint\.pt: damaged"):
        load_checkpoint(tmp_path)


def test_prefetcher_keeps_order_raises_and_ends() -> None:
    def double(value: Any) -> int:
        if value == 3:
            msg = "three"
            raise InputError(msg)
        return int(2 * value)

    with Prefetcher(range(3), double) as items:
        assert list(items) == [0, 2, 4]
    with Prefetcher(range(5), double) as items, pytest.raises(InputError, match="three"):
        list(items)
    with Prefetcher(iter(int, 1), double) as items:
        assert next(iter(items)) == 0
