"""NumPy's arrays and PyTorch's tensors as pickles describe them."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flatrope_planner.errors import InputError
from flatrope_planner.vla.checkpoint.inert_pickle import Call, Named, Stored

# Modules of NumPy in which arrays are put together, by version.
_NUMPY = ("numpy.core.multiarray", "numpy._core.multiarray", "numpy.core.numeric", "numpy._core.numeric")
_KINDS = ("f4", "f8")


def array_of(described: Any) -> NDArray[np.float32]:
    """An array of floating-point numbers, in single precision.

    Raises:
        InputError: when something else is described.
    """
    if isinstance(described, Call) and described.function in [Named(module, "_reconstruct") for module in _NUMPY]:
        # Version, shape, type, whether columns come first, bytes.
        match described.state:
            case (int(), tuple() as shape, kind, False, bytes() as content):
                return _array(content, kind, shape)
    if isinstance(described, Call) and described.function in [Named(module, "_frombuffer") for module in _NUMPY]:
        match described.arguments:
            case (bytes() | bytearray() as buffer, kind, tuple() as shape, "C"):
                return _array(bytes(buffer), kind, shape)
    msg = "expected an array of NumPy, rows first"
    raise InputError(msg)


def _array(content: bytes, kind: Any, shape: tuple[Any, ...]) -> NDArray[np.float32]:
    named = isinstance(kind, Call) and kind.function == Named("numpy", "dtype")
    name = kind.arguments[0] if named and kind.arguments else None
    order = kind.state[1] if named and isinstance(kind.state, tuple) and len(kind.state) > 1 else "<"
    counts = all(type(size) is int and size >= 0 for size in shape)
    if name not in _KINDS or order not in ("<", ">") or not counts:
        msg = f"expected an array of {' or '.join(_KINDS)}"
        raise InputError(msg)
    dtype = np.dtype(f"{order}{name}")
    if math.prod(shape) * dtype.itemsize != len(content):
        msg = f"an array of shape {shape} in {len(content)} bytes"
        raise InputError(msg)
    return np.frombuffer(content, dtype).reshape(shape).astype(np.float32)


@dataclass(frozen=True)
class TensorEntry:
    """A tensor, and where its values lie."""

    # As PyTorch names storages: BFloat16Storage.
    storage_kind: str
    # Name of the storage in its file.
    storage: str
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]


def tensor_of(described: Any) -> TensorEntry | None:
    """A tensor or parameter; None for anything else."""
    if not isinstance(described, Call) or not isinstance(described.arguments, tuple):
        return None
    if described.function == Named("torch._utils", "_rebuild_parameter"):
        return tensor_of(described.arguments[0])
    if described.function != Named("torch._utils", "_rebuild_tensor_v2"):
        return None
    match described.arguments:
        case (Stored(("storage", Named("torch", kind), str(key), _, _)), int(offset), tuple(shape), tuple(stride), *_):
            return TensorEntry(kind, key, offset, shape, stride)
    return None
