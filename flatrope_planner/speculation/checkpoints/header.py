"""The header of a file of safetensors: which tensors it holds, of which type and shape. Loads neither them nor PyTorch.

Eight bytes say how long it is, then comes JSON: https://github.com/huggingface/safetensors#format.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flatrope_planner.errors import SetupError, reason
from flatrope_planner.speculation.checkpoints.files import parse_json

# A model of ten thousand tensors needs a tenth of this.
MOST_HEADER_BYTES = 16 * 2**20
_METADATA = "__metadata__"
_ITEM_BITS = {
    "F4": 4,
    **dict.fromkeys(("F6_E2M3", "F6_E3M2"), 6),
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E4M3", "F8_E5M2", "F8_E8M0"), 8),
    **dict.fromkeys(("U16", "I16", "F16", "BF16"), 16),
    **dict.fromkeys(("U32", "I32", "F32"), 32),
    **dict.fromkeys(("U64", "I64", "F64", "C64"), 64),
}


@dataclass(frozen=True)
class StoredTensor:
    """A tensor in a file."""

    # As safetensors names types: F32, BF16, I64.
    kind: str
    shape: tuple[int, ...]

    @property
    def values(self) -> int:
        """How many values it has."""
        return math.prod(self.shape)

    @property
    def size_bytes(self) -> int:
        """How much room it takes in the file."""
        return (self.values * _ITEM_BITS[self.kind] + 7) // 8


def read_header(path: Path, owner: str = "a model") -> dict[str, StoredTensor]:
    """What a file holds, by name; all of it lies within the file.

    Args:
        path: of the file.
        owner: whose weights are expected, for the complaint.

    Raises:
        SetupError: when it is no file of safetensors, or not whole.
    """
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if size < 8 or length > min(size - 8, MOST_HEADER_BYTES):
                msg = f"a header of {length} bytes in a file of {size}"
                raise ValueError(msg)
            content = parse_json(file.read(length))
        if not isinstance(content, dict):
            msg = "its header is no object"
            raise ValueError(msg)
        room = size - 8 - length
        tensors = {name: _tensor(name, entry, room) for name, entry in content.items() if name != _METADATA}
        if sum(tensor.size_bytes for tensor in tensors.values()) > room:
            msg = "its tensors lie on top of each other"
            raise ValueError(msg)
        return tensors
    except (OSError, ValueError) as err:
        msg = f"{path}: no weights of {owner} ({reason(err)}); expected a whole file of safetensors"
        raise SetupError(msg) from err


def _tensor(name: str, entry: Any, room: int) -> StoredTensor:
    """Raise a ValueError for an entry that contradicts itself or the file."""
    entry = entry if isinstance(entry, dict) else {}
    kind, shape, offsets = entry.get("dtype"), entry.get("shape"), entry.get("data_offsets")
    known = isinstance(kind, str) and kind in _ITEM_BITS
    if not known or not _are_counts(shape) or not _are_counts(offsets) or len(offsets) != 2:
        msg = f"{name[:80]!r} has no known type, shape and place"
        raise ValueError(msg)
    begin, end = offsets
    tensor = StoredTensor(str(kind), tuple(shape))
    if not begin <= end <= room or end - begin != tensor.size_bytes:
        msg = f"{name[:80]!r} of {kind} {shape} does not fit into its place"
        raise ValueError(msg)
    return tensor


def _are_counts(values: Any) -> bool:
    return isinstance(values, list) and len(values) <= 16 and all(type(each) is int and each >= 0 for each in values)
