"""The planner joins a target's stages: the rationale comes first, the trajectory follows from it."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
from stand_ins import SPEC, StraightCore
from tiny_nano import tiny_model, tiny_tokenizer

from flatrope_planner.dimensions import FUTURE_POINTS, HISTORY_POSES
from flatrope_planner.domain import EgoHistory, Observation, ObservationSpec, Trajectory, seconds_to_ns
from flatrope_planner.errors import SetupError
from flatrope_planner.planning.chance import Chance
from flatrope_planner.planning.core import warm_up
from flatrope_planner.planning.planner import Planner
from flatrope_planner.speculation.candidates import Block
from flatrope_planner.speculation.drafter import NoDrafter
from flatrope_planner.speculation.exactness import Exactness
from flatrope_planner.speculation.reasoner import Reasoner
from flatrope_planner.speculation.target import Prefill, StepResult
from flatrope_planner.vla.nano import NanoTarget

STOP = 9
# What the toy writes after each token: 1, 2, 3, then the stop token.
NEXT = {0: 1, 1: 2, 2: 3, 3: STOP}
VOCABULARY = 10


@dataclass(frozen=True)
class ToyPrompt:
    token_ids: tuple[int, ...]
    pinned: Sequence[int] = ()
    rope_delta: int = 0

    def rotary_positions(self) -> torch.Tensor:
        return torch.arange(len(self.token_ids)).expand(3, -1)


@dataclass
class ToyState:
    read: list[int]
    block: list[int] = field(default_factory=list)
    unread: int = 0

    @property
    def length(self) -> int:
        return len(self.read)


class ToyTarget:
    """Counts; its trajectory drives as many metres a second as it has read tokens."""

    stop_token = STOP
    eos_tokens = frozenset[int]()
    ending: tuple[int, ...] = (8, STOP)
    forbidden = torch.zeros(VOCABULARY, dtype=torch.bool)
    token_budget = 20
    observation_spec = ObservationSpec(("wide",), 1, 0.5)

    def __init__(self) -> None:
        self.seeds: list[int | None] = []
        self.guided: list[tuple[int, ...]] = []

    def prepare(self, observation: Observation) -> ToyPrompt:
        return ToyPrompt((7, 0))

    def prefill(self, prompt: ToyPrompt, block: Block) -> tuple[ToyState, Prefill]:
        state = ToyState(list(prompt.token_ids[:-1]))
        read = self.step(state, block)
        self.commit(state, [0])
        return state, Prefill(torch.zeros(0, len(prompt.token_ids) - 1, 1), read)

    def step(self, state: ToyState, block: Block) -> StepResult:
        state.block = list(block.tokens)
        logits = torch.zeros(len(block.tokens), VOCABULARY)
        for row, token in enumerate(block.tokens):
            logits[row, NEXT.get(token, 0)] = 2.5
        return StepResult(logits, torch.zeros(0, len(block.tokens), 1))

    def commit(self, state: ToyState, kept: Sequence[int]) -> None:
        state.read += [state.block[row] for row in kept]

    def guide(self, state: ToyState, prompt: ToyPrompt, written: Sequence[int]) -> None:
        self.guided.append(tuple(written))

    def act(self, state: ToyState, seed: int | None, samples: int) -> tuple[Trajectory, ...]:
        self.seeds.append(seed)
        speed = np.full(FUTURE_POINTS, float(state.length))
        still = np.zeros(FUTURE_POINTS)
        return (Trajectory(np.zeros((FUTURE_POINTS, 3)), still, speed, np.zeros((FUTURE_POINTS, 2))),) * samples

    def text(self, tokens: Sequence[int]) -> str:
        return " ".join(str(token) for token in tokens if token < 8)

    def token_text(self, token: int) -> str:
        return str(token)


def observation() -> Observation:
    still = EgoHistory(np.zeros((HISTORY_POSES, 3)), np.tile(np.eye(3), (HISTORY_POSES, 1, 1)))
    return Observation(1_500_000_000, {}, still)


def planner(target: ToyTarget) -> Planner[ToyPrompt, ToyState]:
    return Planner(target, Reasoner(target, NoDrafter(), 8, Exactness()))


def test_a_plan_is_rationale_then_trajectory() -> None:
    target = ToyTarget()
    plan = planner(target).plan(observation())
    assert plan.t0_ns == 1_500_000_000
    assert plan.rationale.text == "1 2 3"
    assert plan.rationale.complete
    assert [token.margin for token in plan.rationale.tokens] == [2.5] * 4
    # Two tokens of the prompt and four written ones had been read when the trajectory was drawn.
    assert plan.trajectory.speed_mps[0] == 6.0
    assert target.seeds == [None]


def test_nothing_is_left_to_chance_unless_asked_for() -> None:
    target, chance = ToyTarget(), Chance(seed=4, samples=3)
    drawing = planner(target)
    drawing.chance = chance
    drawing.plan(observation())
    # Another seed at another time, and the same one again for the same time.
    assert target.seeds == [chance.seed_at(1_500_000_000)]
    assert target.seeds != [chance.seed_at(1_600_000_000)]
    # What was written is known before anything acts on it.
    assert target.guided == [(1, 2, 3, STOP)]


def test_plain_decoding_is_one_token_a_round() -> None:
    speculation = planner(ToyTarget()).plan(observation()).speculation
    assert (speculation.rounds, speculation.committed) == (3, 3)
    assert speculation.proposed == speculation.accepted == 0


def test_every_stage_is_timed() -> None:
    stage_ms = planner(ToyTarget()).plan(observation()).stage_ms
    assert set(stage_ms) == {"vision", "prefill", "reasoning", "draft", "verify", "action", "total"}
    parts = {"total", "draft", "verify"}
    assert sum(ms for stage, ms in stage_ms.items() if stage not in parts) <= stage_ms["total"] + 1e-6


def test_it_wants_to_see_what_its_target_wants_to_see() -> None:
    assert planner(ToyTarget()).observation_spec == ToyTarget.observation_spec


def test_warming_up_asks_for_one_plan_of_the_targets_own_kind() -> None:
    core = StraightCore()
    warm_up(core)
    (seen,) = core.seen
    assert {camera: len(frames) for camera, frames in seen.frames.items()} == dict.fromkeys(
        SPEC.cameras, SPEC.frames_per_camera
    )
    stamps_ns = [frame.stamp_ns for frame in seen.frames[SPEC.cameras[0]]]
    assert stamps_ns[-1] == seen.t0_ns
    assert seen.t0_ns - stamps_ns[0] == seconds_to_ns(SPEC.frame_period_s) * (SPEC.frames_per_camera - 1)
    assert core.resets == 1
    nano = NanoTarget(tiny_model(), tiny_tokenizer())
    warm_up(Planner(nano, Reasoner(nano, NoDrafter(), 8, Exactness())))


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (SetupError("no waypoints in 'Sunny.'"), "no waypoints in 'Sunny.'"),
        (ValueError("shapes\ndiffer"), "ValueError: shapes differ (fail, line "),
    ],
)
def test_a_warm_up_plan_that_fails_is_told_as_such(error: Exception, words: str) -> None:
    core = StraightCore()

    def fail() -> None:
        raise error

    core.fail = fail
    with pytest.raises(SetupError) as caught:
        warm_up(core)
    assert str(caught.value).startswith(f"the warm-up plan: {words}")


def test_a_first_plan_that_takes_long_is_followed_by_one_that_is_timed() -> None:
    core = StraightCore()
    assert warm_up(core, 1000.0) < 1000.0
    assert len(core.seen) == 1
    warm_up(core, 0.0)
    assert (len(core.seen), core.resets) == (3, 3)
    # Nothing of it has been seen before, as in a drive.
    pictures = [frame.image.tobytes() for frames in core.seen[2].frames.values() for frame in frames]
    assert len(set(pictures)) == len(SPEC.cameras) * SPEC.frames_per_camera
