"""nano on held-out scenes: does it decide and plan as the reference driver did, and does it need its eyes for it?

Scenes and moments come about as the training data does, disturbances included, but from the validation split.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from flatrope_planner.domain import CameraFrame, Decision, EgoHistory, Floats, Observation, Plan, seconds_to_ns
from flatrope_planner.evaluation.nano_of_worker import nano_of_this_worker
from flatrope_planner.evaluation.nano_weights import check_nano_weights
from flatrope_planner.planning.observation import ObservationSpec
from flatrope_planner.planning.stated_decision import decision_of
from flatrope_planner.progress import with_progress
from flatrope_planner.simulation.world import TRAINED_FAMILIES, UNSEEN_FAMILIES, Family, Split
from flatrope_planner.training.collection import collect
from flatrope_planner.training.samples import TrainingSample
from flatrope_planner.vla.loading import NANO, VlaPlanner, load_planner
from flatrope_planner.vla.nano import NanoPrompt, NanoTarget
from flatrope_planner.vla.pictures import decode_picture
from flatrope_planner.workers import run_in_workers

# Far enough behind zero that every frame of the history has a stamp.
T0_S = 10.0
GREY_LEVEL = 128
POINTS_3S, POINTS_6S = 30, 60
# Of each episode, every so many-th moment is asked: neighbours look alike.
STRIDE = 3
REPEATED = 8


@dataclass(frozen=True)
class Answer:
    """What nano made of one moment."""

    family: str
    expected: Decision
    decision: Decision | None
    decision_blind: Decision | None
    # Mean distance (m) between its plan and the reference's over 3 s and 6 s.
    ade_3s_m: float
    ade_6s_m: float


def run_nano_benchmark(episodes: int, jobs: int, weights: Path | None) -> dict[str, Any]:
    """Ask nano about moments of `episodes` scenes of each family.

    Raises:
        InputError: if there is nothing to ask, or the weights are not nano's.
        SetupError: when the weights are missing or do not fit.
    """
    check_nano_weights(weights)
    target = NanoTarget.load(weights)
    tasks = [(family, seed) for seed in range(episodes) for family in Family]
    asked = dict(with_progress(run_in_workers(partial(_ask_episode, weights), tasks, jobs), len(tasks), "episodes"))
    answers = [answer for task in tasks for answer in asked[task]]
    name = NANO if weights is None else str(weights)
    some = [observation_of(sample, target.observation_spec) for sample in _moments(Family.LEAD, 0, target)][:REPEATED]
    return {
        **_scores(answers, {family.value for family in TRAINED_FAMILIES}),
        "unseen": _scores(answers, {family.value for family in UNSEEN_FAMILIES}),
        "reproducible": is_reproducible(load_planner(name), load_planner(name), some),
        "visual_token_share": round(visual_token_share(target.prepare(some[0])), 4),
        "parameters": target.parameters,
        "episodes": episodes,
        "split": Split.VAL.value,
    }


def visual_token_share(prompt: NanoPrompt) -> float:
    """Part of the prompt's tokens that are pictures."""
    return prompt.features.tokens.shape[:-1].numel() / len(prompt.token_ids)


def observation_of(sample: TrainingSample, spec: ObservationSpec) -> Observation:
    """The sample's moment as the planner gets it."""
    backs_s = [back * spec.frame_period_s for back in reversed(range(spec.frames_per_camera))]
    pictures = iter(sample.pictures)
    frames = {
        camera: tuple(CameraFrame(seconds_to_ns(T0_S - back_s), decode_picture(next(pictures))) for back_s in backs_s)
        for camera in spec.cameras
    }
    history = EgoHistory(sample.history_position_m, sample.history_rotation)
    return Observation(seconds_to_ns(T0_S), frames, history, sample.command or None)


def blinded(observation: Observation) -> Observation:
    """The same moment with grey pictures."""
    frames = {
        camera: tuple(replace(frame, image=np.full_like(frame.image, GREY_LEVEL)) for frame in of_camera)
        for camera, of_camera in observation.frames.items()
    }
    return replace(observation, frames=frames)


def is_reproducible(one: VlaPlanner, other: VlaPlanner, observations: Sequence[Observation]) -> bool:
    """Whether both give the same words and the same bits, and the first one does so again."""
    return all(
        _fingerprint(one.plan(o)) == _fingerprint(other.plan(o)) == _fingerprint(one.plan(o)) for o in observations
    )


def table(result: dict[str, Any]) -> str:
    """The scores as text."""
    lines = [f"{'':<18}{'decision':>10}{'blind':>10}{'ADE 3 s':>10}{'ADE 6 s':>10}{'moments':>10}"]
    for name, group in (("trained families", result), ("unseen families", result["unseen"])):
        lines += [_line(family, row) for family, row in group["families"].items()]
        lines.append(_line(name, group) + "\n")
    lines += [_line(decision, row) for decision, row in result["decisions"].items()]
    facts = f"{result['parameters']:,} parameters, {result['visual_token_share']:.0%} of the prompt are pictures"
    lines.append(f"\nreproducible: {result['reproducible']}; {facts}")
    return "\n".join(lines)


def _line(name: str, row: dict[str, Any]) -> str:
    return (
        f"{name:<18}{row['decision_accuracy']:>10.1%}{row['decision_accuracy_blind']:>10.1%}"
        f"{row['ade_3s_m']:>8.2f} m{row['ade_6s_m']:>8.2f} m{row['moments']:>10}"
    )


def _ask_episode(weights: Path | None, task: tuple[Family, int]) -> list[Answer]:
    planner = nano_of_this_worker(weights)
    samples = _moments(*task, planner)
    return [_ask(planner, sample, observation_of(sample, planner.observation_spec)) for sample in samples]


def _moments(family: Family, seed: int, viewer: VlaPlanner | NanoTarget) -> Iterator[TrainingSample]:
    for index, sample in enumerate(collect(family, seed, viewer.observation_spec, Split.VAL)):
        if index % STRIDE == seed % STRIDE:
            yield sample


def _ask(planner: VlaPlanner, sample: TrainingSample, observation: Observation) -> Answer:
    plan, blind = planner.plan(observation), planner.plan(blinded(observation))
    off_m = np.linalg.norm(plan.trajectory.position_m[:, :2] - sample.position_m[:, :2], axis=1)
    return Answer(
        family=sample.family,
        expected=sample.decision,
        decision=decision_of(plan.rationale.text),
        decision_blind=decision_of(blind.rationale.text),
        ade_3s_m=float(off_m[:POINTS_3S].mean()),
        ade_6s_m=float(off_m[:POINTS_6S].mean()),
    )


def _fingerprint(plan: Plan) -> tuple[str, bytes, bytes]:
    return plan.rationale.text, plan.trajectory.position_m.tobytes(), plan.trajectory.action.tobytes()


def _scores(answers: Sequence[Answer], families: set[str]) -> dict[str, Any]:
    kept = [answer for answer in answers if answer.family in families]
    return {
        **_row(kept),
        "families": _rows(kept, (answer.family for answer in kept)),
        "decisions": _rows(kept, (answer.expected.value for answer in kept)),
    }


def _rows(answers: Sequence[Answer], names: Iterable[str]) -> dict[str, Any]:
    groups: dict[str, list[Answer]] = defaultdict(list)
    for name, answer in zip(names, answers, strict=True):
        groups[name].append(answer)
    return {name: _row(group) for name, group in groups.items()}


def _row(answers: Sequence[Answer]) -> dict[str, Any]:
    return {
        "decision_accuracy": _mean(answer.decision is answer.expected for answer in answers),
        "decision_accuracy_blind": _mean(answer.decision_blind is answer.expected for answer in answers),
        "ade_3s_m": _mean(answer.ade_3s_m for answer in answers),
        "ade_6s_m": _mean(answer.ade_6s_m for answer in answers),
        "moments": len(answers),
    }


def _mean(values: Iterable[float]) -> float:
    every: Floats = np.array(list(values), dtype=np.float64)
    return round(float(every.mean()), 4)
