"""Proposes what followed the same last tokens earlier in this request (prompt lookup decoding, Saxena 2023)."""

from collections.abc import Sequence

from torch import Tensor

from flatrope_planner.speculation.candidates import Candidates
from flatrope_planner.speculation.target import Prompt

# Longest and shortest run of tokens that is looked for.
LONGEST, SHORTEST = 3, 1


class PromptLookupDrafter:
    """Copies from the prompt and from what has been written."""

    name = "prompt-lookup"

    def __init__(self) -> None:
        """Nothing read yet."""
        self._tokens: list[int] = []

    def anticipate(self, prompt: Prompt, nodes: int, depth: int) -> Candidates:
        """What followed the prompt's last tokens before."""
        self._tokens = list(prompt.token_ids)
        return self.propose(nodes, depth)

    def begin(self, prompt: Prompt, tapped: Tensor) -> None:
        """Look in this prompt from now on."""
        del tapped
        self._tokens = list(prompt.token_ids)

    def propose(self, nodes: int, depth: int) -> Candidates:
        """What followed the latest earlier occurrence of the last tokens."""
        count, tokens = min(nodes, depth), self._tokens
        for length in range(min(LONGEST, len(tokens) - 1), SHORTEST - 1, -1):
            run = tokens[-length:]
            for start in range(len(tokens) - length - 1, -1, -1):
                if tokens[start : start + length] == run:
                    return Candidates.chain(tokens[start + length : start + length + count], self.name)
        return Candidates()

    def observe(self, tokens: Sequence[int], tapped: Tensor) -> None:
        """What has been written can be copied too."""
        del tapped
        self._tokens += tokens

    def reset(self) -> None:
        """Nothing outlives a request."""
        self._tokens = []
