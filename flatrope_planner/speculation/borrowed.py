"""Parts of the target that drafts use as they are: they never learn, and a draft's checkpoint does not hold them."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class BorrowedParts:
    """A target's embeddings, last norm and head, at the target's precision; drafts compute in float32."""

    embeddings: nn.Embedding
    norm: nn.Module
    head: nn.Module

    @property
    def device(self) -> torch.device:
        """Where the target computes."""
        return self.embeddings.weight.device

    def to(self, device: torch.device) -> "BorrowedParts":
        """The same, moved to a device; of the target these modules are moved with them."""
        return BorrowedParts(self.embeddings.to(device), self.norm.to(device), self.head.to(device))

    def embed(self, tokens: Tensor) -> Tensor:
        """int64 (...) -> float32 (..., hidden)."""
        embedded: Tensor = self.embeddings(tokens)
        return embedded.float()

    def embed_chain(self, tokens: Sequence[int]) -> Tensor:
        """N tokens -> float32 (1, n, hidden)."""
        return self.embed(torch.tensor([list(tokens)], device=self.device))

    def logits(self, hidden: Tensor) -> Tensor:
        """Normalised states (..., hidden) -> float32 (..., vocabulary)."""
        logits: Tensor = self.head(hidden.to(self.embeddings.weight.dtype))
        return logits.float()

    def normed(self, hidden: Tensor) -> Tensor:
        """States (..., hidden) through the target's last norm."""
        normed: Tensor = self.norm(hidden)
        return normed
