"""Texts by chance: the token at each place is drawn with a noise of its own, so that speculation stays exact.

Drawing from probabilities p is taking the largest of p / q, where q is exponential noise. Each place of a text has its
q, whatever else is drawn or proposed; so the text of a seed is one text, and it is verified as a greedy one is. The
filters, and on a CPU the draws, are those of transformers' `generate` with the same seed.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from flatrope_planner.speculation.sampling import Sampling


class Sampler:
    """Draws one text."""

    def __init__(self, sampling: Sampling) -> None:
        """Begin a text."""
        self._sampling = sampling
        self._random = torch.Generator().manual_seed(sampling.seed)
        # Of each place that was asked for: (vocabulary,).
        self._noise: list[Tensor] = []

    def scores(self, logits: Tensor, places: Sequence[int]) -> Tensor:
        """Numbers whose largest is the token drawn.

        Args:
            logits: (rows, vocabulary), -inf for what may not be written.
            places: which token of the text each row settles.

        Returns:
            float32 (rows, vocabulary).
        """
        likely = self._likely(logits.float() / self._sampling.temperature)
        noise = torch.stack([self._noise_at(place, logits.shape[1]) for place in places])
        return likely.softmax(dim=-1) / noise.to(logits.device)

    def _likely(self, logits: Tensor) -> Tensor:
        """Logits, -inf for tokens that are too unlikely."""
        if self._sampling.top_k is not None:
            least = logits.topk(min(self._sampling.top_k, logits.shape[1]), dim=-1).values[:, -1:]
            logits = logits.masked_fill(logits < least, -torch.inf)
        if self._sampling.top_p < 1.0:
            ordered, order = logits.sort(dim=-1)
            unlikely = ordered.softmax(dim=-1).cumsum(dim=-1) <= 1.0 - self._sampling.top_p
            unlikely[:, -1] = False
            logits = logits.masked_fill(unlikely.scatter(1, order, unlikely), -torch.inf)
        return logits

    def _noise_at(self, place: int, vocabulary: int) -> Tensor:
        while len(self._noise) <= place:
            self._noise.append(torch.empty(1, vocabulary).exponential_(1.0, generator=self._random)[0])
        return self._noise[place]
