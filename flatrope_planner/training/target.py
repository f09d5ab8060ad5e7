"""Trains nano: samples, tokenizer, network, exported weights; each stage takes up what an earlier run left."""

import signal
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from functools import partial
from types import FrameType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from flatrope_planner.interruption import unless_ignored
from flatrope_planner.progress import clock
from flatrope_planner.training.checkpoint import load_checkpoint, restoring, save_checkpoint
from flatrope_planner.training.collation import Collator
from flatrope_planner.training.held_out import HeldOutScore, score
from flatrope_planner.training.machine import bfloat16_is_fast, keep_freed_memory
from flatrope_planner.training.objective import Batch, losses, seeing_loss
from flatrope_planner.training.optimisation import Optimiser, learning_rate
from flatrope_planner.training.options import TargetTrainingOptions
from flatrope_planner.training.prefetching import Prefetcher
from flatrope_planner.training.samples import TrainingSample, list_shards, read_shard
from flatrope_planner.training.stream import SampleStream, StreamItem, StreamPosition
from flatrope_planner.training.teaching import Teacher
from flatrope_planner.vla.config import NanoConfig
from flatrope_planner.vla.model import NanoModel
from flatrope_planner.vla.tokenizer import NanoTokenizer

# Weights of the losses beside the rationale's.
ACTION_WEIGHT, SIGHTS_WEIGHT, FACTS_WEIGHT = 1.0, 0.5, 1.0
REPORT_PERIOD_S = 15.0
HELD_OUT_SAMPLES = 96


@dataclass(frozen=True)
class _Prepared:
    batch: Batch
    after: StreamPosition


class TargetTrainer:
    """One training run, from wherever its folder says it stands."""

    def __init__(self, options: TargetTrainingOptions, config: NanoConfig, tokenizer: NanoTokenizer) -> None:
        """Random weights, or those of the last checkpoint."""
        torch.manual_seed(options.seed)
        self._options = options
        self._tokenizer = tokenizer
        self.model = NanoModel(config, tokenizer)
        _use_plain_attention(self.model)
        self._teacher = Teacher(config)
        schedule = partial(
            learning_rate, seeing_steps=options.seeing_steps, steps=options.steps, peak=options.peak_rate
        )
        self.optimiser = Optimiser(self.model, self._teacher, schedule)
        self._collator = Collator(config, tokenizer)
        self._stream = SampleStream(options.work, options.clips_per_batch, options.seed)
        self._flow_random = torch.Generator().manual_seed(options.seed)
        self._position = self._stream.start()
        self._half = bfloat16_is_fast()
        self.latest: HeldOutScore | None = None
        self._restore()

    def run(self, wants_stop: Callable[[], bool]) -> None:
        """Train until the last step or until `wants_stop`; the state is on disk afterwards."""
        held_out = held_out_samples(self._options)
        progress = _Progress(self.optimiser.step_count, self._options.steps)
        saved_s = time.monotonic()
        last = self._options.stop_at or self._options.steps
        items = self._stream.batches(self._position)
        with Prefetcher(items, self._prepare) as batches:
            for prepared in batches:
                if self.optimiser.step_count >= last or wants_stop():
                    break
                progress.add(self._step(prepared), len(prepared.batch.ids), self.optimiser.step_count)
                if self._is_time_to_score():
                    self.latest = self._score(held_out)
                    progress.show_score(self.latest, self.optimiser.step_count)
                if time.monotonic() - saved_s >= self._options.checkpoint_every_s:
                    self.save()
                    saved_s = time.monotonic()
        self.save()

    def _is_time_to_score(self) -> bool:
        step = self.optimiser.step_count
        return step > self._options.seeing_steps and step % self._options.score_every == 0

    @property
    def finished(self) -> bool:
        """Whether all steps are done."""
        return self.optimiser.step_count >= self._options.steps

    def save(self) -> None:
        """Write the checkpoint."""
        state = {
            "model": self.model.state_dict(),
            "teacher": self._teacher.state_dict(),
            "optimiser": self.optimiser.state(),
            "flow_random": self._flow_random.get_state(),
            "position": asdict(self._position),
        }
        save_checkpoint(self._options.work, state)

    def _restore(self) -> None:
        state = load_checkpoint(self._options.work)
        if state is None:
            return
        with restoring(self._options.work):
            self.model.load_state_dict(state["model"])
            self._teacher.load_state_dict(state["teacher"])
            self.optimiser.restore(state["optimiser"])
            self._flow_random.set_state(state["flow_random"])
            position: dict[str, Any] = state["position"]
            self._position = StreamPosition(position["epoch"], position["batches"], tuple(position["shards"]))
        self._position = self._stream.with_practice(self._position)

    def _prepare(self, item: StreamItem) -> _Prepared:
        rng = np.random.default_rng([self._options.seed, item.after.epoch, item.after.batches, 1])
        return _Prepared(self._collator.collate(item.samples, rng), item.after)

    def _step(self, prepared: _Prepared) -> dict[str, Tensor]:
        """One step; returns the losses it went down."""
        found = self._losses(prepared.batch)
        self.optimiser.step(torch.stack(list(found.values())).sum())
        self._position = prepared.after
        return found

    def _losses(self, batch: Batch) -> dict[str, Tensor]:
        """Weighted losses by name."""
        with self._precision():
            if self.optimiser.step_count < self._options.seeing_steps:
                return {"sights": seeing_loss(self.model, self._teacher, batch)}
            found = losses(self.model, self._teacher, batch, self._options.flow_draws, self._flow_random)
        return {
            "rationale": found.rationale,
            "action": ACTION_WEIGHT * found.action,
            "sights": SIGHTS_WEIGHT * found.sights,
            "facts": FACTS_WEIGHT * found.facts,
        }

    def _precision(self) -> AbstractContextManager[Any]:
        return torch.autocast("cpu", dtype=torch.bfloat16) if self._half else nullcontext()

    def _score(self, samples: list[TrainingSample]) -> HeldOutScore:
        """The averaged weights, as they would ship today."""
        trained = {name: value.detach().clone() for name, value in self.model.named_parameters()}
        self.model.load_state_dict(self.optimiser.average, strict=False)
        try:
            with self._precision():
                return score(self.model, self._tokenizer, self._collator, samples)
        finally:
            self.model.load_state_dict(trained, strict=False)


class _Progress:
    """One line now and then: how far, how fast, how well."""

    def __init__(self, start: int, steps: int) -> None:
        self._start, self._steps = start, steps
        self._began_s = self._shown_s = time.monotonic()
        self._samples = 0
        self._found: list[dict[str, Tensor]] = []

    def add(self, found: dict[str, Tensor], samples: int, step: int) -> None:
        """Count a step in."""
        self._samples += samples
        self._found.append({name: loss.detach() for name, loss in found.items()})
        now_s = time.monotonic()
        if now_s - self._shown_s < REPORT_PERIOD_S and step < self._steps:
            return
        passed_s = now_s - self._began_s
        left_s = passed_s / (step - self._start) * (self._steps - step)
        print(
            f"step {step}/{self._steps}  {self._means()}  "
            f"{self._samples / passed_s:.1f} samples/s  {clock(left_s)} left",
            flush=True,
        )
        self._shown_s = now_s
        self._found.clear()

    def _means(self) -> str:
        """The losses since the last line."""
        newest = [found for found in self._found if found.keys() == self._found[-1].keys()]
        means = {name: float(torch.stack([found[name] for found in newest]).mean()) for name in newest[-1]}
        return "  ".join(f"{name} {mean:.3f}" for name, mean in means.items())

    def show_score(self, found: HeldOutScore, step: int) -> None:
        """Print how the held-out samples went."""
        print(
            f"step {step}  held out: decision {100 * found.decision_accuracy:.0f} %  ADE 3 s {found.ade_3s_m:.2f} m",
            flush=True,
        )


class StopRequest:
    """Set by a request to end while in use; a second one ends the process as usual."""

    def __init__(self) -> None:
        self._requested = False
        self._previous: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Callable[[], bool]:
        for kind in unless_ignored():
            self._previous[kind] = signal.signal(kind, self._request)
        return lambda: self._requested

    def __exit__(self, *_: object) -> None:
        self._give_back()

    def _request(self, *_: int | FrameType | None) -> None:
        self._requested = True
        self._give_back()

    def _give_back(self) -> None:
        for kind, handler in self._previous.items():
            signal.signal(kind, handler)


def held_out_samples(options: TargetTrainingOptions) -> list[TrainingSample]:
    """A fixed choice among the held-out moments."""
    samples = [sample for path in list_shards(options.held_out) for sample in read_shard(path)]
    order = np.random.default_rng(0).permutation(len(samples))
    return [samples[i] for i in order[:HELD_OUT_SAMPLES]]


def train(options: TargetTrainingOptions, config: NanoConfig, tokenizer: NanoTokenizer) -> TargetTrainer:
    """Train on the samples there are; returns the trainer, finished or interrupted."""
    keep_freed_memory()
    torch.set_num_threads(options.jobs)
    trainer = TargetTrainer(options, replace(config, vocab_size=tokenizer.size), tokenizer)
    with StopRequest() as wants_stop:
        trainer.run(wants_stop)
    return trainer


def _use_plain_attention(model: NanoModel) -> None:
    """Plain products train faster on a CPU than its fused attention, whose backward pass is slow."""
    for part in (model.vlm.model.visual, model.vlm.model.language_model, model.expert.trunk):
        part.set_attn_implementation("eager")
