"""Three ways to keep the promise that speculation never changes a rationale (docs/architecture.md).

*canonical*: plain and speculative decoding are the same passes, so nothing needs to be compared; a self-test shows that
the device in use keeps to it. *tolerant*: blocks of any size. *audit*: canonical, and every n-th rationale is written
again without speculation; one that differs switches speculation off.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

from flatrope_planner.errors import InputError
from flatrope_planner.speculation.decoder import DecodedRationale, Decoder
from flatrope_planner.speculation.drafter import Drafter
from flatrope_planner.speculation.rehearsed import Rehearsal, RehearsedDrafter
from flatrope_planner.speculation.sampling import Sampling
from flatrope_planner.speculation.target import DecodingState, Prompt, Target

P = TypeVar("P", bound=Prompt)
S = TypeVar("S", bound=DecodingState)

# Trees that the self-test tries, and how often each of their levels holds the right token.
TRIALS = 6
RIGHT_SHARE = 0.7
BRANCHES = 2


class ExactnessMode(Enum):
    """How exactness is kept."""

    CANONICAL = "canonical"
    TOLERANT = "tolerant"
    AUDIT = "audit"

    @property
    def is_exact(self) -> bool:
        """Whether no bit may change."""
        return self is not ExactnessMode.TOLERANT


@dataclass(frozen=True)
class Exactness:
    """A mode, and every how many-th rationale is written twice; none for 0."""

    mode: ExactnessMode = ExactnessMode.CANONICAL
    audit_every: int = 0

    def __post_init__(self) -> None:
        if self.audit_every < 0 or (self.mode is ExactnessMode.AUDIT and not self.audit_every):
            msg = f"exactness {self.mode.value}: audit_every is {self.audit_every}, expected at least 1 to audit"
            raise InputError(msg)


@dataclass(frozen=True)
class Divergence:
    """Where a rationale first differs from the one without speculation."""

    place: int
    # What speculation wrote and what the target alone writes; None behind the end.
    written: int | None
    expected: int | None
    # Logit of the target's own token minus that of the runner-up: small ones are near-ties.
    margin: float


def compare(got: DecodedRationale[S], plain: DecodedRationale[S]) -> Divergence | None:
    """The first difference, None for none."""
    if got.token_ids == plain.token_ids:
        return None
    pairs = zip(got.token_ids, plain.token_ids, strict=False)
    shorter = min(len(got.token_ids), len(plain.token_ids))
    place = next((i for i, (a, b) in enumerate(pairs) if a != b), shorter)
    return Divergence(
        place,
        got.token_ids[place] if place < len(got.token_ids) else None,
        plain.token_ids[place] if place < len(plain.token_ids) else None,
        plain.rationale.tokens[place].margin if place < len(plain.rationale.tokens) else 0.0,
    )


class ExactDecoder(Generic[P, S]):
    """Decodes with a drafter, and sees to it that this changes nothing."""

    def __init__(self, target: Target[P, S], drafter: Drafter, width: int, exactness: Exactness) -> None:
        """Decode with blocks of `width` tokens."""
        fixed = exactness.mode.is_exact
        self._speculative = Decoder(target, drafter, width, fixed_shape=fixed)
        self._plain = Decoder(target, None, width, fixed_shape=fixed)
        self._mode, self._audit_every = exactness.mode, exactness.audit_every
        self._count = 0
        self.audited = 0
        self.divergences: list[Divergence] = []

    @property
    def speculating(self) -> bool:
        """Whether proposals are made: not after an audit has found a difference."""
        return not (self._mode is ExactnessMode.AUDIT and self.divergences)

    def decode(self, prompt: P, sampling: Sampling | None = None) -> DecodedRationale[S]:
        """The target's rationale, greedy or drawn; that without speculation where an audit has found them to differ."""
        if not self.speculating:
            return self._plain.decode(prompt, sampling)
        decoded = self._speculative.decode(prompt, sampling)
        self._count += 1
        if not self._audit_every or self._count % self._audit_every:
            return decoded
        plain = self._plain.decode(prompt, sampling)
        self.audited += 1
        found = compare(decoded, plain)
        if found is None:
            return decoded
        self.divergences.append(found)
        return plain


def self_test(target: Target[P, S], prompt: P, width: int) -> list[Divergence]:
    """Differences that random trees, in part right, make to a prompt's rationale; none on a device that is exact."""
    plain = Decoder(target, None, width).decode(prompt)
    found = []
    for trial in range(TRIALS):
        rehearsal = Rehearsal(RIGHT_SHARE, BRANCHES, trial)
        drafter = RehearsedDrafter(plain.token_ids, len(target.forbidden), rehearsal)
        divergence = compare(Decoder(target, drafter, width).decode(prompt), plain)
        found += [] if divergence is None else [divergence]
    return found
