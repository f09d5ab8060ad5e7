"""Reads the weights of a draft: safetensors only, and nothing is loaded before every name and shape is known to fit."""

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from flatrope_planner.errors import SetupError, reason
from flatrope_planner.speculation.checkpoints.files import file_in
from flatrope_planner.speculation.checkpoints.header import StoredTensor, read_header

WEIGHTS_FILE = "model.safetensors"
# What others keep weights in, and what to do about it.
OTHER_FILES = {
    "pytorch_model.bin": "a pickle, which may run code; convert it to safetensors",
    "model.safetensors.index.json": "weights in several files; join them into one",
}
# Precisions that a weight may be stored at, by what the network wants.
FLOATS = ("BF16", "F16", "F32")
STORED_AS = {torch.float32: FLOATS, torch.int64: ("I64",), torch.bool: ("BOOL",)}


def read_weights(
    directory: Path, wanted: Mapping[str, Tensor], welcome: Mapping[str, Tensor] | None = None
) -> dict[str, Tensor]:
    """Weights by name, as they are stored.

    Args:
        directory: of the draft.
        wanted: tensors without data, of the shapes and types the configuration asks for.
        welcome: more of them, which may be absent.

    Raises:
        SetupError: when a weight is missing, left over, of another shape or type, or not finite.
    """
    path = file_in(directory, WEIGHTS_FILE)
    if not path.exists():
        raise SetupError(_absent(path))
    header = read_header(path, "a draft")
    expected = {**wanted, **{name: tensor for name, tensor in (welcome or {}).items() if name in header}}
    _check_names(path, set(header), set(expected))
    for name, tensor in expected.items():
        _check_form(path, name, header[name], tensor)
    try:
        with safe_open(path, framework="pt") as file:
            weights = {name: file.get_tensor(name) for name in expected}
    except (OSError, SafetensorError) as err:
        msg = f"{path}: no weights of a draft ({reason(err)}); expected a file of safetensors"
        raise SetupError(msg) from err
    for name, weight in weights.items():
        if not weight.isfinite().all():
            msg = f"{path}: {name} holds values that are not finite; expected finite weights"
            raise SetupError(msg)
    return weights


def write_weights(directory: Path, weights: Mapping[str, Tensor]) -> None:
    """Write weights as they are.

    Raises:
        SetupError: when they cannot be written.
    """
    write_tensors(directory / WEIGHTS_FILE, {name: value.detach().contiguous() for name, value in weights.items()})


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write a file of safetensors that all may read, and its folder where there is none.

    Raises:
        SetupError: when it cannot be written: the disk is full, or nobody may write there.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        save_file(dict(tensors), path, metadata={"format": "pt"})
        # safetensors leaves the file readable to its owner alone.
        path.chmod(0o644)
    except (OSError, SafetensorError) as err:
        msg = f"{path}: cannot be written ({reason(err)})"
        raise SetupError(msg) from err


def _absent(path: Path) -> str:
    for name, remedy in OTHER_FILES.items():
        if (path.parent / name).exists():
            return f"{path.parent / name}: {remedy}; expected {WEIGHTS_FILE}"
    return f"{path}: no weights of a draft; expected a file of safetensors"


def _check_names(path: Path, found: set[str], wanted: set[str]) -> None:
    for names, problem in ((wanted - found, "has no"), (found - wanted, "has an unknown")):
        if names:
            name = min(names)[:80]
            msg = f"{path}: {problem} {name!r} ({len(names)} such); expected what {path.parent.name}/config.json says"
            raise SetupError(msg)


def _check_form(path: Path, name: str, stored: StoredTensor, wanted: Tensor) -> None:
    kind, shape = stored.kind, list(stored.shape)
    if shape != list(wanted.shape) or kind not in STORED_AS[wanted.dtype]:
        kinds = " or ".join(STORED_AS[wanted.dtype])
        msg = f"{path}: {name} is {kind} {shape}, expected {kinds} {list(wanted.shape)} as the configuration says"
        raise SetupError(msg)
