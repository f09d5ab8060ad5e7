"""Which targets there are, and how one is found by what its user calls it. A new target is one more line here."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from flatrope_planner.arguments import user_path
from flatrope_planner.errors import InputError, SetupError, reason
from flatrope_planner.speculation.checkpoints.files import file_in, read_json
from flatrope_planner.vla.alpamayo.config import Release
from flatrope_planner.vla.alpamayo.target import AlpamayoTarget
from flatrope_planner.vla.autovla.config import MODEL_TYPE as AUTOVLA
from flatrope_planner.vla.autovla.target import AutoVlaTarget
from flatrope_planner.vla.checkpoint.files import cached_folder
from flatrope_planner.vla.config import CONFIG_FILE, MODEL_TYPE
from flatrope_planner.vla.nano import SHIPPED_WEIGHTS, NanoTarget
from flatrope_planner.vla.target import INT8, NO_GUIDANCE, Running, VlaTarget

NANO = "nano"

# Of a folder, the text layers whose hidden states a drafter wants, and how it is to be run.
Loader = Callable[[Path, tuple[int, ...], Running], VlaTarget]


def _nano(folder: Path, tapped_layers: tuple[int, ...], running: Running) -> VlaTarget:
    if running.device not in ("auto", "cpu"):
        msg = f"device is {running.device!r}, expected cpu or auto: nano is too small for another"
        raise InputError(msg)
    loaded = NanoTarget.load(folder, tapped_layers)
    return loaded if running.precision is None else loaded.at(running.precision)


# `model_type` of a configuration -> who reads the folder.
LOADERS: dict[str, Loader] = {
    MODEL_TYPE: _nano,
    Release.R1.value: AlpamayoTarget.load,
    Release.V1_5.value: AlpamayoTarget.load,
    AUTOVLA: AutoVlaTarget.load,
}

# Those that `Running.guidance` means something to.
GUIDED = (Release.V1_5.value,)
# Those that `Running.quantised` is there for.
QUANTISED = (Release.R1.value, Release.V1_5.value)


def load_target(weights: Path | None, tapped_layers: tuple[int, ...] = (), running: Running | None = None) -> VlaTarget:
    """The target whose weights lie in a folder.

    Args:
        weights: the folder; None: nano's, which ship with the package.
        tapped_layers: text layers whose hidden states a drafter wants.
        running: cameras, precision and device.

    Raises:
        SetupError: when weights are missing, damaged or of no target that is known.
        InputError: when they cannot be run as asked.
    """
    # A folder without a configuration is taken for one of nano, whose loader says what is missing.
    kind, how = model_type_of(weights) or MODEL_TYPE, running or Running()
    if how.guidance != NO_GUIDANCE and kind not in GUIDED:
        msg = (
            f"guidance is {how.guidance:g}, expected {NO_GUIDANCE:g}: {kind} cannot be guided, {', '.join(GUIDED)} can"
        )
        raise InputError(msg)
    if how.quantised and kind not in QUANTISED:
        msg = f"precision is {INT8!r}, expected auto, float32 or bfloat16: only {' and '.join(QUANTISED)} are quantised"
        raise InputError(msg)
    return LOADERS.get(kind, _nano)(weights or SHIPPED_WEIGHTS, tapped_layers, how)


def find_target(name: str) -> Path | None:
    """The folder of a target's weights by its name: nano (None), a folder, or an id in the local Hugging Face cache.

    Raises:
        InputError: when there is none of that name.
        SetupError: when the folder holds something else.
    """
    if name == NANO:
        return None
    folder = user_path(name)
    # An empty name would be the working directory.
    cached = folder if name and _is_folder(folder) else cached_folder(name)
    if cached is None:
        raise InputError(_no_target(name))
    kind, found = "", "no model_type can be read there"
    try:
        kind = _model_type(read_json(file_in(cached, CONFIG_FILE)))
    except (OSError, ValueError) as err:
        found = f"{found} ({reason(err)})"
    if kind not in LOADERS:
        msg = f"{cached / CONFIG_FILE}: {f'model_type is {kind!r}' if kind else found}, expected {', '.join(LOADERS)}"
        raise SetupError(msg)
    return cached


def _no_target(name: str) -> str:
    """That there is none of that name, and what to do about it."""
    of_a_repository = re.fullmatch(r"[\w.-]+/[\w.-]+", name, re.ASCII) and not name.startswith(".")
    remedy = f"; `hf download {name}` fetches it" if of_a_repository else ""
    expected = f"{NANO}, or a checkpoint of Alpamayo or AutoVLA: its folder, or its id in the local Hugging Face cache"
    found = "a file" if _is_there(user_path(name)) else "no such folder and nothing in the cache"
    return f"there is no target {name!r}: {found}; expected {expected}{remedy}"


def _is_there(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        # Too long a name, for instance.
        return False


def _model_type(content: Any) -> str:
    """What a configuration says it is, "" for nothing."""
    kind = content.get("model_type") if isinstance(content, dict) else None
    return kind if isinstance(kind, str) else ""


def model_type_of(weights: Path | None) -> str:
    """What the configuration in a folder says it is, "" for nothing.

    Raises:
        SetupError: when it is no file of that folder.
    """
    if weights is None:
        return ""
    try:
        return _model_type(read_json(file_in(weights, CONFIG_FILE)))
    except (OSError, ValueError):
        return ""
