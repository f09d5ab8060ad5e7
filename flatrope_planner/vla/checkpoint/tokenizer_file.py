"""The tokenizer of a checkpoint, read within its bounds."""

from pathlib import Path

from tokenizers import Tokenizer

from flatrope_planner.errors import SetupError, reason
from flatrope_planner.speculation.checkpoints.files import file_in
from flatrope_planner.vla.tokenizer import MOST_BYTES


def read_tokenizer(path: Path, owner: str) -> Tokenizer:
    """Read `tokenizer.json`.

    Args:
        path: of the file.
        owner: whose tokenizer is expected, for the complaint.

    Raises:
        SetupError: when it is missing, too large, damaged or no file of its folder.
    """
    if not file_in(path.parent, path.name).exists():
        msg = f"{path}: missing; expected the tokenizer of {owner}"
        raise SetupError(msg)
    size = path.stat().st_size
    if size > MOST_BYTES:
        msg = f"{path}: {size} bytes, a tokenizer has at most {MOST_BYTES}"
        raise SetupError(msg)
    try:
        return Tokenizer.from_file(str(path))
    except Exception as err:  # the library raises nothing more special
        msg = f"{path}: damaged ({reason(err)}); expected a tokenizer"
        raise SetupError(msg) from err
