"""What of a plan is left to chance: its rationale, and the noise that trajectories grow from. By default nothing is."""

from dataclasses import dataclass

import numpy as np

from flatrope_planner.errors import InputError
from flatrope_planner.speculation.sampling import Sampling

# Of `Chance`: nothing is drawn, and a trajectory grows from the middle of the noise.
NO_SEED = -1
# Stamps are no longer, whatever their sign.
STAMP_BITS = 64


@dataclass(frozen=True)
class Chance:
    """How much is drawn, and from which seed."""

    seed: int = NO_SEED
    # Of the rationale (see `Sampling`); 0: it is the greedy one.
    temperature: float = 0.0
    top_p: float = 0.98
    # Trajectories that are drawn behind the one rationale.
    samples: int = 1

    def __post_init__(self) -> None:
        if self.samples < 1:
            msg = f"chance: samples is {self.samples}, expected at least 1"
            raise InputError(msg)
        if self.seed == NO_SEED and (self.temperature or self.samples > 1):
            msg = f"chance: no seed, expected one for temperature {self.temperature} and {self.samples} samples"
            raise InputError(msg)
        # Refused now, and not with the first plan.
        self.sampling(0)

    def seed_at(self, t0_ns: int) -> int | None:
        """Another one for each observation, the same whenever that one is planned for; None where nothing is drawn."""
        if self.seed == NO_SEED:
            return None
        return int(np.random.SeedSequence([self.seed, t0_ns % 2**STAMP_BITS]).generate_state(1)[0])

    def sampling(self, seed: int | None) -> Sampling | None:
        """How the rationale is drawn with this seed; None where it is the greedy one."""
        if not self.temperature or seed is None:
            return None
        return Sampling(seed, self.temperature, self.top_p)
