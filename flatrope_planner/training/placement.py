"""Batches where a draft learns."""

from dataclasses import fields, replace
from typing import Any, TypeVar

import torch
from torch import Tensor

B = TypeVar("B")


def on_device(batch: B, device: torch.device) -> B:
    """A batch, a dataclass of tensors and of such dataclasses, on a device."""
    each: Any = batch
    there: B = replace(each, **{field.name: _moved(getattr(each, field.name), device) for field in fields(each)})
    return there


def _moved(part: Any, device: torch.device) -> Any:
    return part.to(device) if isinstance(part, Tensor) else on_device(part, device)
