"""From the shards of a checkpoint into a model, each weight once, with nothing missing and nothing left over."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from flatrope_planner.errors import SetupError, reason
from flatrope_planner.speculation.checkpoints.files import file_in
from flatrope_planner.vla.checkpoint.files import CONFIG_FILE, read_json
from flatrope_planner.vla.memory_limits import left_in_container, left_in_process

WEIGHTS_FILE = "model.safetensors"
INDEX_FILE = "model.safetensors.index.json"
# As PyTorch saves weights by itself.
PICKLES = (".bin", ".pt", ".pth", ".ckpt")
# What weights are stored as, as safetensors calls it; all else is quantised.
STORED_AS = ("F32", "BF16", "F16", "F64")
M = TypeVar("M", bound=nn.Module)

MEMORY_FILE = Path("/proc/meminfo")
BYTES_PER_MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Naming:
    """How a checkpoint calls the weights of a model."""

    # Its name for a weight -> the model's.
    to_model: Callable[[str], str] = str
    # The model's names of weights that it may leave out.
    optional: frozenset[str] = frozenset()


@contextmanager
def without_storage() -> Iterator[None]:
    """Modules made in here hold parameters without storage, while their buffers are computed as ever."""
    register = nn.Module.register_parameter

    def on_meta(module: nn.Module, name: str, parameter: nn.Parameter | None) -> None:
        if parameter is not None:
            parameter = nn.Parameter(parameter.to("meta"), requires_grad=False)
        register(module, name, parameter)

    nn.Module.register_parameter = on_meta  # type: ignore[assignment,method-assign]
    try:
        yield
    finally:
        nn.Module.register_parameter = register  # type: ignore[method-assign]


def new_network(build: Callable[[], M], complaint: str) -> M:
    """A network without weights, for `load_weights` to fill.

    Args:
        build: makes it.
        complaint: what is said when it cannot be made, naming the file that describes it.

    Raises:
        SetupError: when no network can be made of its configuration.
    """
    try:
        with without_storage():
            return build()
    except (RuntimeError, ValueError, TypeError, KeyError, AttributeError) as err:
        msg = f"{complaint} ({reason(err)})"
        raise SetupError(msg) from err


def load_weights(
    model: nn.Module, checkpoint: Path, precision: torch.dtype, device: torch.device, naming: Naming | None = None
) -> None:
    """Fill a model, at this precision and on this device.

    Args:
        model: to be filled.
        checkpoint: folder of the weights.
        precision: to compute with.
        device: to compute on.
        naming: how weights are called in the files; None: as in the model.

    Raises:
        SetupError: when a file is missing or damaged, weights are missing, strange or of another shape, or memory is
            too small for them.
    """
    names = naming or Naming()
    shards = _shards(checkpoint)
    wanted = model.state_dict()
    parameters = {name for name, _ in model.named_parameters()}
    check_memory(str(checkpoint), sum(weight.numel() for weight in wanted.values()) * precision.itemsize, device)
    found = set[str]()
    for path, listed in shards.items():
        try:
            read = _read(path, listed, wanted, names.to_model)
            placed = {name: value.to(device, precision) for name, value in read.items()}
        except (MemoryError, RuntimeError) as err:
            # PyTorch and safetensors say in their own ways that there is not enough.
            msg = f"{path}: expected memory for its weights on {device} ({reason(err)})"
            raise SetupError(msg) from err
        for name, value in placed.items():
            _check_finite(path, name, value)
        model.load_state_dict(placed, strict=False, assign=True)
        found |= placed.keys()
    # Frequencies and scales are in the configuration, too; some checkpoints leave them out.
    missing = sorted(parameters - found - names.optional)
    if missing:
        where = f"{CONFIG_FILE} or the backbone's"
        msg = f"{checkpoint}: {missing[0]} is missing ({len(missing)} in all), expected by {where}"
        raise SetupError(msg)
    for module in model.modules():
        for name, buffer in module.named_buffers(recurse=False):
            is_scale = buffer.is_floating_point() and name not in module._non_persistent_buffers_set  # noqa: SLF001
            setattr(module, name, buffer.to(device, precision if is_scale else buffer.dtype))


def _shards(checkpoint: Path) -> dict[Path, set[str] | None]:
    """Weight files and the names in each; None where there is but one file."""
    index = file_in(checkpoint, INDEX_FILE)
    if not index.is_file():
        return {_only_file(checkpoint): None}
    content: dict[str, Any] = read_json(index)
    names = content.get("weight_map")
    if not isinstance(names, dict) or not all(isinstance(file, str) for file in names.values()):
        msg = f"{index}: no weight_map, expected the file of each weight"
        raise SetupError(msg)
    shards: dict[Path, set[str] | None] = {}
    for file in sorted(set(names.values())):
        path = file_in(checkpoint, Path(file).name)
        if not path.is_file():
            msg = f"{path}: missing, expected as one of the {len(set(names.values()))} files that {index.name} names"
            raise SetupError(msg)
        shards[path] = {name for name, place in names.items() if place == file}
    return shards


def _only_file(checkpoint: Path) -> Path:
    path = file_in(checkpoint, WEIGHTS_FILE)
    if not path.is_file():
        pickles = sorted(each.name for each in checkpoint.iterdir() if each.suffix in PICKLES)
        there = f"; {pickles[0]} is a pickle, which is not opened" if pickles else ""
        msg = (
            f"{path}: missing, expected the weights of the checkpoint, here or in files that {INDEX_FILE} names{there}"
        )
        raise SetupError(msg)
    return path


def _read(
    path: Path, listed: set[str] | None, wanted: dict[str, Tensor], to_model: Callable[[str], str]
) -> dict[str, Tensor]:
    """The weights of one file by the model's names, compared with what it wants."""
    try:
        with safe_open(path, framework="pt") as file:
            held = set(file.keys())
            for name in sorted(held if listed is None else listed):
                _check_weight(path, name, file.get_slice(name) if name in held else None, wanted.get(to_model(name)))
            return {to_model(name): file.get_tensor(name) for name in held}
    except (OSError, SafetensorError) as err:
        msg = f"{path}: expected the weights of the checkpoint ({reason(err)})"
        raise SetupError(msg) from err


def _check_weight(path: Path, name: str, stored: Any, wanted: Tensor | None) -> None:
    if stored is None:
        msg = f"{path}: {name} is missing, expected as {INDEX_FILE} says"
        raise SetupError(msg)
    if wanted is None:
        msg = f"{path}: {name} is no weight of the model that {CONFIG_FILE} describes"
        raise SetupError(msg)
    kind, shape = stored.get_dtype(), list(stored.get_shape())
    if kind not in STORED_AS:
        msg = f"{path}: {name} is of type {kind}, expected one of {', '.join(STORED_AS)}"
        raise SetupError(msg)
    if shape != list(wanted.shape):
        msg = f"{path}: {name} is {shape}, expected {list(wanted.shape)} by {CONFIG_FILE} and the backbone's"
        raise SetupError(msg)


def _check_finite(path: Path, name: str, value: Tensor) -> None:
    # Both are no number where one value is none, and quicker to find than all values that are one.
    if not all(extreme.isfinite() for extreme in torch.aminmax(value)):
        msg = f"{path}: {name} has values that are no numbers, expected finite ones"
        raise SetupError(msg)


def check_memory(checkpoint: str, needed: int, device: torch.device) -> None:
    """Refuse weights of so many bytes that do not fit, before any is placed.

    Raises:
        SetupError: saying how much is needed, and how much there is.
    """
    free = free_memory(device)
    if free is not None and needed > free:
        need_mb, free_mb = needed // BYTES_PER_MEGABYTE, free // BYTES_PER_MEGABYTE
        msg = f"{checkpoint}: weights of {need_mb} MB, expected no more than the {free_mb} MB free on {device}"
        raise SetupError(msg)


def free_memory(device: torch.device) -> int | None:
    """Bytes that are free on a device; None where the system does not say."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    try:
        lines = MEMORY_FILE.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    kilobytes = next((line.split()[1] for line in lines if line.startswith("MemAvailable:")), None)
    known = [None if kilobytes is None else int(kilobytes) * 1024, left_in_container(), left_in_process()]
    return min((free for free in known if free is not None), default=None)
