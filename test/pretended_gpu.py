"""A GPU that is not there: tensors that say they are on it, lie in main memory, and must not be mixed with others.

What PyTorch would refuse on a machine with a GPU is refused here: one operation on tensors of two devices, NumPy
without a way back. What it computes is what the CPU computes, so results can be compared bit for bit. Speed, memory and
the arithmetic of a real GPU are not pretended.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

from flatrope_planner.vla.target import Running

_setup_privateuseone_for_python_backend("pretended")
GPU = torch.device("pretended", 0)
aten = torch.ops.aten
# They take their indices from main memory, too.
INDEXING = {Tensor.__getitem__, aten.index, aten.index_put, aten.index_put_, aten._index_put_impl_}
# They bring values from one device to another.
TRANSFERS = {aten.to, aten._to_copy, aten.copy_}


class OnGpu(Tensor):
    """A tensor of the pretended GPU around one in main memory, with which it shares its values."""

    within: Tensor

    @staticmethod
    def __new__(cls, within: Tensor) -> "OnGpu":
        made = Tensor._make_wrapper_subclass(
            cls,
            within.shape,
            strides=within.stride(),
            storage_offset=within.storage_offset(),
            dtype=within.dtype,
            device=GPU,
        )
        made.within = within
        return made

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        # For these PyTorch would look for CUDA before this class is asked.
        if func in (F.scaled_dot_product_attention, Tensor.__getitem__, Tensor.__setitem__):
            return run(func, args, kwargs or {})
        if func is Tensor.tolist:
            return args[0].within.tolist()
        return torch._C._disabled_torch_function_impl(func, types, args, kwargs or {})

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return run(func, args, kwargs or {})


class PretendingFromLists(TorchFunctionMode):
    """Makes `torch.tensor` on the GPU, of which no dispatcher is told."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = kwargs or {}
        if func is torch.tensor and given.get("device") is not None:
            return func(*args, **{**given, "device": None}).to(given["device"])
        return func(*args, **given)


class Pretending(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Makes all else on the GPU that is asked for there."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return run(func, args, kwargs or {})


def run(func: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    """One operation, refused as PyTorch would, computed in main memory."""
    leaves = list(leaves_of((args, kwargs)))
    tensors = [each for each in leaves if isinstance(each, Tensor)]
    check_one_device(func, args, tensors)
    devices = [each for each in leaves if isinstance(each, torch.device)]
    there = devices[0].type == GPU.type if devices else any(map(is_there, tensors))
    with _disable_current_modes():
        computed = func(*mapped(in_memory, args), **mapped(in_memory, kwargs))
    # What was changed in place is what it was; what went to another device is another.
    changed = {id(each.within): each for each in tensors if isinstance(each, OnGpu)}
    if not there:
        return mapped(lambda each: each.clone() if id(each) in changed else each, computed)
    return mapped(lambda each: changed.get(id(each)) if id(each) in changed else on_gpu(each), computed)


def leaves_of(value: Any) -> Iterator[Any]:
    """What is in tuples, lists and dictionaries; PyTorch's own walk over them takes longer than the operations here."""
    if isinstance(value, dict):
        value = tuple(value.values())
    if not isinstance(value, tuple | list):
        yield value
        return
    for part in value:
        yield from leaves_of(part)


def mapped(change: Callable[[Any], Any], value: Any) -> Any:
    """The same, each leaf changed."""
    if isinstance(value, dict):
        return {name: mapped(change, part) for name, part in value.items()}
    if isinstance(value, tuple | list):
        return type(value)([mapped(change, part) for part in value])
    return change(value)


def check_one_device(func: Any, args: Any, tensors: list[Tensor]) -> None:
    """Refuse a mixture; a number in a tensor of no dimensions may come from main memory."""
    if getattr(func, "overloadpacket", None) in TRANSFERS or not any(is_there(each) for each in tensors):
        return
    looked_at = [args[0]] if getattr(func, "overloadpacket", func) in INDEXING else tensors
    strangers = [each for each in looked_at if not is_there(each) and each.dim() > 0]
    if strangers:
        msg = f"{func}: Expected all tensors to be on the same device, found {strangers[0].shape} on the CPU"
        raise RuntimeError(msg)


def is_there(value: Tensor) -> bool:
    return isinstance(value, OnGpu)


def in_memory(value: Any) -> Any:
    if isinstance(value, torch.device) and value.type == GPU.type:
        return torch.device("cpu")
    return value.within if isinstance(value, OnGpu) else value


def on_gpu(value: Any) -> Any:
    if not isinstance(value, Tensor) or is_there(value):
        return value
    # Views of wrappers that inference has made could not be taken behind it; those of what is in them can.
    with torch.inference_mode(mode=False):
        return OnGpu(value)


@contextmanager
def pretended_gpu() -> Iterator[None]:
    """A machine with that GPU, where targets are placed on it unless they are to be elsewhere."""
    with pytest.MonkeyPatch.context() as patch, PretendingFromLists(), Pretending():  # type: ignore[no-untyped-call]
        place = Running.place
        patch.setattr(Running, "place", lambda how: GPU if how.device == "auto" else place(how))
        yield
