"""One tick from observation to plan, each stage timed."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from flatrope_planner.domain import Observation, ObservationSpec, Plan, SpeculationHealth, Trajectory
from flatrope_planner.planning.chance import Chance
from flatrope_planner.planning.consensus import most_central

if TYPE_CHECKING:
    # Whoever only handles plans need not load torch.
    from flatrope_planner.speculation.reasoner import Reasoner
    from flatrope_planner.speculation.target import DecodingState, Prompt

P = TypeVar("P", bound="Prompt")
S = TypeVar("S", bound="DecodingState")
S_contra = TypeVar("S_contra", bound="DecodingState", contravariant=True)

MILLISECONDS_PER_SECOND = 1e3


class SeesAndActs(Protocol[P, S_contra]):
    """What of a target (`speculation.target.Target`) lies before and behind decoding."""

    @property
    def observation_spec(self) -> ObservationSpec:
        """Cameras and frames of an observation."""
        ...

    def prepare(self, observation: Observation) -> P:
        """Encode pictures and lay out the prompt."""
        ...

    def guide(self, state: S_contra, prompt: P, written: Sequence[int]) -> None:
        """Read what acting needs besides the state behind the rationale `written`; most targets need nothing."""
        ...

    def act(self, state: S_contra, seed: int | None, samples: int) -> tuple[Trajectory, ...]:
        """Draw trajectories behind a finished rationale; without a seed, the one from the middle of the noise."""
        ...


class Planner(Generic[P, S]):
    """Looks, writes the rationale, then draws the trajectory that follows from it."""

    def __init__(self, target: SeesAndActs[P, S], reasoner: "Reasoner[P, S]") -> None:
        """Plan with a target and the reasoner that writes its rationales."""
        self._target, self._reasoner = target, reasoner
        # What is drawn, plan by plan: nothing, unless another one is put here.
        self.chance = Chance()

    @property
    def observation_spec(self) -> ObservationSpec:
        """What `plan` wants to see."""
        return self._target.observation_spec

    @property
    def health(self) -> SpeculationHealth:
        """How speculation does."""
        return self._reasoner.health

    def reset(self) -> None:
        """A new drive: nothing of the last one is remembered."""
        self._reasoner.reset()

    def plan(self, observation: Observation) -> Plan:
        """The plan for one observation; equal observations give equal plans, whatever was planned before.

        Raises:
            InputError: when the observation is not what the target wants.
        """
        return self.plan_with_samples(observation, 0, 0)[0]

    def plan_with_samples(
        self, observation: Observation, seed: int, samples: int
    ) -> tuple[Plan, tuple[Trajectory, ...]]:
        """The plan, and trajectories drawn behind the same rationale; their time is not the plan's.

        Raises:
            InputError: when the observation is not what the target wants.
        """
        started_s = time.perf_counter()
        prompt = self._target.prepare(observation)
        seen_s = time.perf_counter()
        drawn_with = self.chance.seed_at(observation.t0_ns)
        decoded = self._reasoner.decode(prompt, self.chance.sampling(drawn_with))
        written_s = time.perf_counter()
        self._target.guide(decoded.state, prompt, decoded.token_ids)
        # Unless asked for, no draw: what is left to chance when the rationale stands is noise, and pulls to one side.
        trajectory = most_central(self._target.act(decoded.state, drawn_with, self.chance.samples))
        ended_s = time.perf_counter()
        stages_s = {"vision": seen_s - started_s, "action": ended_s - written_s, "total": ended_s - started_s}
        stage_ms = {stage: duration_s * MILLISECONDS_PER_SECOND for stage, duration_s in stages_s.items()}
        # Acting begins with reading the end marks.
        writing_ms = dict(decoded.stage_ms)
        stage_ms["action"] += writing_ms.pop("handover")
        plan = Plan(
            t0_ns=observation.t0_ns,
            trajectory=trajectory,
            rationale=decoded.rationale,
            speculation=decoded.speculation,
            stage_ms={**stage_ms, **writing_ms},
        )
        return plan, self._target.act(decoded.state, seed, samples) if samples else ()
