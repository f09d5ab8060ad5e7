"""What the benchmarks of nano take as its weights."""

from pathlib import Path

from flatrope_planner.errors import InputError
from flatrope_planner.vla.config import CONFIG_FILE, MODEL_TYPE
from flatrope_planner.vla.targets import model_type_of


def check_nano_weights(weights: Path | None) -> None:
    """Refuse what is no folder of nano's before anything is done with it; None is what ships with the package.

    Raises:
        InputError: for another target's checkpoint, or what is no folder.
        SetupError: when its configuration is no file of that folder.
    """
    if weights is None:
        return
    if not weights.is_dir():
        msg = f"--weights is {weights}, expected a folder with weights of nano"
        raise InputError(msg)
    kind = model_type_of(weights)
    # Without a configuration it may still be a nano that is damaged, of which its loader knows more.
    if kind not in ("", MODEL_TYPE):
        msg = (
            f"--weights takes nano's weights: {weights / CONFIG_FILE} has model_type {kind!r}, expected {MODEL_TYPE!r}"
        )
        raise InputError(msg)
