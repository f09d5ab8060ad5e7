"""One tick from observation to plan, each stage timed."""

import time
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from flatrope_planner.domain import Observation, ObservationSpec, Plan, SpeculationHealth, Trajectory

if TYPE_CHECKING:
    # Whoever only handles plans need not load torch.
    from flatrope_planner.speculation.reasoner import Reasoner
    from flatrope_planner.speculation.target import DecodingState, Prompt

P = TypeVar("P", bound="Prompt")
S = TypeVar("S", bound="DecodingState")
P_co = TypeVar("P_co", bound="Prompt", covariant=True)
S_contra = TypeVar("S_contra", bound="DecodingState", contravariant=True)

MILLISECONDS_PER_SECOND = 1e3


class SeesAndActs(Protocol[P_co, S_contra]):
    """What of a target (`speculation.target.Target`) lies before and behind decoding."""

    @property
    def observation_spec(self) -> ObservationSpec:
        """Cameras and frames of an observation."""
        ...

    def prepare(self, observation: Observation) -> P_co:
        """Encode pictures and lay out the prompt."""
        ...

    def act(self, state: S_contra, seed: int | None, samples: int) -> tuple[Trajectory, ...]:
        """Draw trajectories behind a finished rationale; without a seed, the one from the middle of the noise."""
        ...


class Planner(Generic[P, S]):
    """Looks, writes the rationale, then draws the trajectory that follows from it."""

    def __init__(self, target: SeesAndActs[P, S], reasoner: "Reasoner[P, S]") -> None:
        """Plan with a target and the reasoner that writes its rationales."""
        self._target, self._reasoner = target, reasoner

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
        decoded = self._reasoner.decode(prompt)
        written_s = time.perf_counter()
        # Not a draw: what is left to chance when the rationale stands is noise, and would pull to one side for ever.
        (trajectory,) = self._target.act(decoded.state, None, 1)
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
