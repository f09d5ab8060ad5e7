"""Tells targets apart: a draft belongs to the weights it was trained for, and drafts badly, in silence, for others."""

import hashlib

import torch
from torch import nn

# Values of each weight that go in, spread evenly.
SAMPLED = 64


def fingerprint(model: nn.Module) -> str:
    """A short name of a model's weights: the same at every precision from bfloat16 up, on every device."""
    digest = hashlib.sha256()
    for name, weight in sorted(model.named_parameters()):
        flat = weight.detach().flatten()
        count = min(SAMPLED, len(flat))
        # In whole numbers: single precision runs over the end of large weights.
        places = torch.arange(count, device=flat.device) * (len(flat) - 1) // max(count - 1, 1)
        rounded = flat[places].to(torch.bfloat16).view(torch.int16).cpu()
        digest.update(f"{name} {tuple(weight.shape)}".encode())
        digest.update(rounded.numpy().tobytes())
    return digest.hexdigest()[:16]
