"""Trains a draft on a target's traces; an interrupted run goes on where it stopped."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import numpy as np
import torch
from torch import nn

from flatrope_planner.errors import InputError
from flatrope_planner.progress import clock
from flatrope_planner.speculation.checkpoints.layout import Draft
from flatrope_planner.training.checkpoint import RUN, load_checkpoint, require_same_run, restoring, save_checkpoint
from flatrope_planner.training.crew import Crew
from flatrope_planner.training.draft_scoring import DraftLoss, DraftScore
from flatrope_planner.training.optimisation import Optimiser, learning_rate
from flatrope_planner.training.placement import on_device
from flatrope_planner.training.trace_store import TraceStore
from flatrope_planner.training.traces import Trace, list_drives

B = TypeVar("B")

REPORT_PERIOD_S = 15.0
# Of the drives, every so many-th is kept for scoring.
HELD_OUT_EVERY = 12
# One is kept, one is trained on.
LEAST_DRIVES = 2
# A draft guesses what follows a text's first token.
LEAST_TEXT = 2


@dataclass(frozen=True)
class DraftTrainingOptions:
    """Options of `flatrope train draft`."""

    traces: Path
    # Where the checkpoint is kept between runs.
    work: Path
    steps: int = 2000
    batch: int = 16
    peak_rate: float = 2e-3
    loss: DraftLoss = DraftLoss.CE
    seed: int = 0
    checkpoint_every_s: float = 120.0
    score_every: int = 250


class DraftLearner(Protocol[B]):
    """A draft that can be taught."""

    @property
    def network(self) -> Draft:
        """What is trained."""
        ...

    def batch(self, traces: Sequence[Trace], rng: np.random.Generator) -> B:
        """Texts as tensors."""
        ...

    def disturbed(self, trace: Trace, rng: np.random.Generator) -> Trace:
        """What is trained on in place of a text; scored is the text itself."""
        ...

    def score(self, batch: B, kind: DraftLoss) -> DraftScore:
        """How well the draft guesses."""
        ...


class DraftTrainer(Generic[B]):
    """One run, from wherever its folder says it stands."""

    def __init__(self, options: DraftTrainingOptions, learner: DraftLearner[B], target: str = "") -> None:
        """Train the learner's network; what it borrows from the target (its fingerprint) stays as it is.

        Raises:
            InputError: when there are not enough traces, or another run's checkpoint is in the folder of work.
        """
        self._options, self._learner, self._target = options, learner, target
        self.crew = Crew()
        self.draft = learner.network
        schedule = partial(learning_rate, seeing_steps=0, steps=options.steps, peak=options.peak_rate)
        self.optimiser = Optimiser(self.draft, nn.ModuleList(), schedule)
        drives = list_drives(options.traces)
        if len(drives) < LEAST_DRIVES:
            msg = f"{options.traces}: traces of {len(drives)} drives, expected at least {LEAST_DRIVES}"
            raise InputError(msg)
        self._held_out = TraceStore(drives[::HELD_OUT_EVERY])
        self._traces = TraceStore([path for i, path in enumerate(drives) if i % HELD_OUT_EVERY])
        for store, use in ((self._held_out, "score"), (self._traces, "train")):
            if store.longest < LEAST_TEXT:
                msg = f"{options.traces}: no text to {use} with has more than one token, expected some that go on"
                raise InputError(msg)
        state = load_checkpoint(options.work)
        if state is not None:
            require_same_run(options.work, state, self._run)
            with restoring(options.work):
                self.draft.load_state_dict(state["draft"])
                self.optimiser.restore(state["optimiser"])

    def run(self, wants_stop: Callable[[], bool]) -> None:
        """Train until the last step or until `wants_stop`; the state is on disk afterwards."""
        began_s = shown_s = saved_s = time.monotonic()
        begun_at = self.optimiser.step_count
        for batch in self._batches():
            if self.optimiser.step_count >= self._options.steps or self.crew.agree(wish=wants_stop()):
                break
            found = self._step(batch)
            step, now_s = self.optimiser.step_count, time.monotonic()
            if not self.crew.leads:
                continue
            if now_s - shown_s >= REPORT_PERIOD_S:
                left_s = (now_s - began_s) / (step - begun_at) * (self._options.steps - step)
                print(
                    f"step {step}/{self._options.steps}  loss {float(found.loss.detach()):.3f}  "
                    f"expected length {float(found.expected_length):.2f}  {clock(left_s)} left",
                    flush=True,
                )
                shown_s = now_s
            if step % self._options.score_every == 0:
                print(f"step {step}  held out: expected length {self.score():.3f}", flush=True)
            if now_s - saved_s >= self._options.checkpoint_every_s:
                self.save()
                saved_s = now_s
        if self.crew.leads:
            self.save()
        self.crew.wait()

    @property
    def finished(self) -> bool:
        """Whether all steps are done."""
        return self.optimiser.step_count >= self._options.steps

    @torch.no_grad()
    def score(self) -> float:
        """Expected accepted length of the averaged weights on drives that are not trained on."""
        trained = {name: value.detach().clone() for name, value in self.draft.named_parameters()}
        self.draft.load_state_dict(self.optimiser.average, strict=False)
        rng = np.random.default_rng(0)
        lengths = []
        for start in range(0, len(self._held_out), self._options.batch):
            batch = self._batch(self._held_out[start : start + self._options.batch], rng)
            lengths.append(float(self._learner.score(batch, DraftLoss.CE).expected_length))
        self.draft.load_state_dict(trained, strict=False)
        # Where all texts of a batch have but one token, nothing is guessed.
        return float(np.nanmean(lengths))

    def save(self) -> None:
        """Write the checkpoint."""
        state = {RUN: self._run, "draft": self.draft.state_dict(), "optimiser": self.optimiser.state()}
        save_checkpoint(self._options.work, state)

    @property
    def _run(self) -> Mapping[str, str]:
        """What this run is made by; the steps are not, more of them may be asked for later."""
        options = self._options
        made_by = {
            "kind": type(self.draft).__name__,
            **vars(self.draft.config),
            "target": self._target,
            "loss": options.loss.value,
            "rate": options.peak_rate,
            "batch": options.batch,
            "seed": options.seed,
        }
        return {name.replace("_", "-"): str(getattr(value, "value", value)) for name, value in made_by.items()}

    def _step(self, batch: B) -> DraftScore:
        found = self._learner.score(batch, self._options.loss)
        self.optimiser.step(found.loss, self.crew.average)
        return found

    def _batches(self) -> Iterator[B]:
        """Batch i is the same whenever and wherever it is drawn, and whoever shares it."""
        while True:
            rng = np.random.default_rng([self._options.seed, self.optimiser.step_count])
            chosen = rng.choice(len(self._traces), self._options.batch, replace=len(self._traces) < self._options.batch)
            mine = self.crew.share([*enumerate(chosen)])
            yield self._batch([self._disturbed(place, i) for place, i in mine], rng)

    def _batch(self, traces: Sequence[Trace], rng: np.random.Generator) -> B:
        """A batch where the draft is."""
        return on_device(self._learner.batch(traces, rng), next(self.draft.parameters()).device)

    def _disturbed(self, place: int, index: int) -> Trace:
        """A trace at its place in the batch of this step."""
        rng = np.random.default_rng([self._options.seed, self.optimiser.step_count, place])
        return self._learner.disturbed(self._traces[index], rng)
