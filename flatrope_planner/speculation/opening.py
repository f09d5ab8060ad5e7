"""How a text begins: the pass over the prompt settles its first token, and foresees what an early guess had right.

A candidate that was read together with the prompt was read in a pass of another shape than the rounds', so what the
target said of it may differ in the last bit. It is therefore only foreseen: the first round verifies it once more.
"""

from dataclasses import dataclass
from typing import Generic, TypeVar

from flatrope_planner.speculation.candidates import Candidates
from flatrope_planner.speculation.drafter import Drafter
from flatrope_planner.speculation.target import Prefill, Prompt, StepResult
from flatrope_planner.speculation.verification import Verified

P = TypeVar("P", bound=Prompt)


@dataclass(frozen=True)
class Opening(Generic[P]):
    """The first pass of a request."""

    prompt: P
    read: Prefill
    verified: Verified

    @property
    def foreseen(self) -> Candidates:
        """What the target is about to write behind its first token."""
        tokens = [choice.token for choice in self.verified.choices[1:]]
        chain = Candidates.chain(tokens, "")
        return Candidates(chain.tokens, chain.parents, tuple(choice.source for choice in self.verified.choices[1:]))

    def show(self, drafter: Drafter) -> None:
        """Let a drafter take in the prompt, the first token and what is foreseen."""
        drafter.begin(self.prompt, self.read.tapped)
        drafter.observe(self.verified.tokens, self.read.block.tapped[:, self.verified.read_rows])

    def show_next(self, drafter: Drafter, verified: Verified, result: StepResult) -> None:
        """Let a drafter take in the first round, of which it has seen what was foreseen rightly."""
        known = len(self.verified.choices) - 1
        if [0, *verified.rows][: known + 1] != list(range(known + 1)):
            # Foreseen wrongly, or too much for the block: back to the first token.
            drafter.begin(self.prompt, self.read.tapped)
            drafter.observe(self.verified.tokens[:1], self.read.block.tapped[:, :1])
            known = 0
        if known < len(verified.tokens):
            drafter.observe(verified.tokens[known:], result.tapped[:, verified.read_rows[known:]])
