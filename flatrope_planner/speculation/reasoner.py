"""Writes the rationales of a planner, watches over speculation while it does, and says what is amiss with it."""

from typing import Generic, TypeVar

from flatrope_planner.domain import SpeculationHealth
from flatrope_planner.speculation.canary import Canary
from flatrope_planner.speculation.decoder import DecodedRationale
from flatrope_planner.speculation.drafter import Drafter, NoDrafter
from flatrope_planner.speculation.exactness import ExactDecoder, Exactness, self_test
from flatrope_planner.speculation.sampling import Sampling
from flatrope_planner.speculation.target import DecodingState, Prompt, Target

P = TypeVar("P", bound=Prompt)
S = TypeVar("S", bound=DecodingState)


class Reasoner(Generic[P, S]):
    """Decodes with a drafter, and without one as soon as that would change a text."""

    def __init__(
        self, target: Target[P, S], drafter: Drafter, width: int, exactness: Exactness, problem: str = ""
    ) -> None:
        """Reason with a target.

        Args:
            target: whose greedy text is written.
            drafter: who proposes.
            width: tokens of a block, anchor included.
            exactness: how it is kept.
            problem: why this is not the drafter that was asked for; "" if it is.
        """
        self._target, self._drafter, self._width = target, drafter, width
        self._exactness, self._problem = exactness, problem
        self._decoder = ExactDecoder(target, drafter, width, exactness)
        self._canary = Canary()
        self._tested = not exactness.mode.is_exact or isinstance(drafter, NoDrafter)
        self._failed_test = ""

    def decode(self, prompt: P, sampling: Sampling | None = None) -> DecodedRationale[S]:
        """The target's greedy rationale, or the one drawn; the first prompt also serves for the self-test."""
        if not self._tested:
            self._test(prompt)
        decoded = self._decoder.decode(prompt, sampling)
        if self._decoder.speculating and self._drafter.name:
            self._canary.watch(decoded.speculation, decoded.stage_ms)
        return decoded

    def reset(self) -> None:
        """A new drive: the drafter forgets the last one."""
        self._drafter.reset()

    @property
    def health(self) -> SpeculationHealth:
        """How speculation does."""
        drafter = self._drafter.name
        broken = self._failed_test or self._broken_promise()
        return SpeculationHealth(
            drafter=drafter,
            exactness=self._exactness.mode.value,
            speculating=bool(drafter) and not self._failed_test and self._decoder.speculating,
            broken_promise=broken,
            problem=self._problem or (self._canary.complaint() if not broken else ""),
            audited=self._decoder.audited,
            divergences=len(self._decoder.divergences),
        )

    def _test(self, prompt: P) -> None:
        """Speculate at random once; on a device that is not exact, do so never again."""
        self._tested = True
        found = self_test(self._target, prompt, self._width)
        if found:
            self._failed_test = f"the self-test changed {len(found)} texts on this device: speculation is off"
            self._decoder = ExactDecoder(self._target, NoDrafter(), self._width, self._exactness)

    def _broken_promise(self) -> str:
        found = self._decoder.divergences
        if not found:
            return ""
        worst = max(each.margin for each in found)
        words = f"{len(found)} of {self._decoder.audited} audited texts differ, at a margin of up to {worst:.3g}"
        return words if self._decoder.speculating else f"{words}: speculation is off"
