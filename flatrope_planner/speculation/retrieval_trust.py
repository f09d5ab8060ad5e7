"""How far each kind of context is trusted: numbers fitted by maximum likelihood on real rationales.

Fitted on the clips whose name's SHA-256 begins with an even byte (half of them), each read with the clips of nine other
tenths as its corpus and its own earlier rationales as the drive; docs/results.md reports both halves.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

# Added to a source's chance, so that a token it does not know is unlikely and not impossible.
UNKNOWN = 1e-3


@dataclass(frozen=True)
class Trust:
    """Logarithm of a context's share: linear in log count and log number of different followers."""

    bias: float
    count: float
    followers: float

    def of(self, count: float, followers: int) -> float:
        """For a context that was followed so often, by so many different tokens; not yet divided by the sum."""
        return math.exp(self.bias + self.count * math.log(count) + self.followers * math.log(followers))


@dataclass(frozen=True)
class Agreement:
    """Exponents of the mixed chance of a token and of its chances by each source alone."""

    mixed: float
    alone: tuple[float, ...]

    def of(self, chance: float, alone: Sequence[float]) -> float:
        """For a token's chances; not yet divided by the sum."""
        factors = [(each + UNKNOWN) ** exponent for each, exponent in zip(alone, self.alone, strict=True)]
        return float(chance**self.mixed * math.prod(factors))


# By kind of context, as `contexts` counts them.
CORPUS_TRUST = (
    Trust(-0.067, -0.067, -0.071),
    Trust(0.652, 0.003, -0.173),
    Trust(1.380, -0.026, -0.064),
    Trust(1.407, 0.753, -1.540),
    Trust(1.816, 0.606, -0.827),
    Trust(2.219, 0.699, -1.339),
    Trust(2.206, 1.167, -2.154),
    Trust(1.639, 1.043, -1.667),
    Trust(1.230, 0.531, -1.245),
    Trust(2.392, 1.395, -2.592),
    Trust(1.187, 0.079, -0.785),
    Trust(0.896, -0.321, 0.361),
    Trust(-0.397, -0.079, 0.043),
    Trust(-0.294, 0.047, -0.275),
    Trust(0.068, -0.239, 0.939),
    Trust(1.312, 0.168, -0.019),
    Trust(1.555, 0.329, 0.190),
    Trust(-0.770, -0.209, 0.432),
    Trust(-0.733, -0.093, 0.397),
    Trust(-1.106, 0.021, 0.417),
    Trust(0.227, -0.167, 0.420),
    Trust(0.862, 0.058, 0.450),
    Trust(0.520, -0.172, 0.072),
    Trust(0.948, 0.101, -0.112),
    # The opening; the share of the drive's is fitted against this.
    Trust(5.0, 0.0, 0.0),
)
DRIVE_TRUST = (
    Trust(-0.418, -0.126, 0.237),
    Trust(-1.035, -0.119, 0.842),
    Trust(1.473, 1.299, -1.637),
    Trust(0.899, 0.483, -1.415),
    Trust(2.490, 1.401, -2.586),
    Trust(1.459, 0.846, -1.187),
    Trust(1.565, 1.595, -0.966),
    Trust(1.441, 1.947, -0.652),
    Trust(1.291, 0.828, -0.579),
    Trust(1.301, 0.731, -0.301),
    Trust(1.283, 0.711, -0.248),
    Trust(-0.551, -0.282, -0.107),
    Trust(-0.635, 0.127, 1.248),
    Trust(-0.708, 0.179, 0.449),
    Trust(-0.494, 0.203, 0.350),
    Trust(0.229, 0.341, -0.301),
    Trust(1.285, 1.019, -0.267),
    Trust(-1.657, -0.168, -0.775),
    Trust(-1.510, 0.263, -0.616),
    Trust(-1.090, 0.568, -0.610),
    Trust(0.180, -0.001, 0.077),
    Trust(0.943, 0.408, 0.467),
    Trust(0.151, 0.237, -0.013),
    Trust(2.179, 1.931, -1.131),
    Trust(5.967, 0.908, -1.316),
)
AGREEMENT = Agreement(0.763, (0.101, 0.141))
