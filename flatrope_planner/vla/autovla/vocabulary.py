"""The tokenizer of a checkpoint: Qwen2.5-VL's, and behind its tokens one for each action of the codebook."""

from pathlib import Path

from tokenizers import AddedToken, Tokenizer

from flatrope_planner.errors import SetupError
from flatrope_planner.vla import tokenizer as tok
from flatrope_planner.vla.autovla.codebook import CODEBOOK_FILE
from flatrope_planner.vla.autovla.prompt import VIDEO_PAD
from flatrope_planner.vla.checkpoint.files import CONFIG_FILE
from flatrope_planner.vla.checkpoint.tokenizer_file import read_tokenizer
from flatrope_planner.vla.tokenizer import TOKENIZER_FILE, TextTokenizer

MARKS = (tok.END_OF_TEXT, tok.IM_START, tok.IM_END, tok.VISION_START, tok.VISION_END, VIDEO_PAD)


def action_token(number: int) -> str:
    """The token of an action."""
    return f"<action_{number}>"


class AutoVlaTokenizer(TextTokenizer):
    """Also knows the actions."""

    def __init__(self, tokenizer: Tokenizer, actions: int) -> None:
        """Wrap a tokenizer in which that many actions are the last tokens."""
        super().__init__(tokenizer)
        first = self.special(action_token(0))
        self.actions = range(first, first + actions)
        self.video_pad = self.special(VIDEO_PAD)
        self.im_end = self.special(tok.IM_END)


def load_vocabulary(checkpoint: Path, actions: int, size: int) -> AutoVlaTokenizer:
    """The checkpoint's tokenizer; where it has no actions, they are added, as AutoVLA's own code does it.

    Args:
        checkpoint: the folder.
        actions: of the codebook.
        size: of the vocabulary by the configuration.

    Raises:
        SetupError: when it is missing, or its tokens are not those of codebook and configuration.
    """
    path = checkpoint / TOKENIZER_FILE
    tokenizer = read_tokenizer(path, "the checkpoint")
    if tokenizer.token_to_id(action_token(0)) is None:
        tokenizer.add_tokens([AddedToken(action_token(number), normalized=True) for number in range(actions)])
    for mark in MARKS:
        if tokenizer.token_to_id(mark) is None:
            msg = f"{path}: no token {mark}, expected the tokenizer of a Qwen2.5-VL"
            raise SetupError(msg)
    _check_actions(path, tokenizer, actions)
    tokens = tokenizer.get_vocab_size()
    if tokens > size:
        msg = f"{checkpoint / CONFIG_FILE}: vocab_size is {size}, expected at least {tokens}, the tokens of {path.name}"
        raise SetupError(msg)
    return AutoVlaTokenizer(tokenizer, actions)


def _check_actions(path: Path, tokenizer: Tokenizer, actions: int) -> None:
    """All actions are there, one behind the other, with nothing behind the last one."""
    ids = [tokenizer.token_to_id(action_token(number)) for number in range(actions + 1)]
    held = next((number for number, index in enumerate(ids) if index is None), None)
    if held != actions:
        found = f"{held}" if held is not None else f"more than {actions}"
        msg = f"{path}: {found} action tokens, expected {actions}, the actions of {CODEBOOK_FILE}"
        raise SetupError(msg)
    # Whatever stands behind the first action is an action to AutoVLA.
    first = tokenizer.get_vocab_size() - actions
    for number, index in enumerate(ids[:-1]):
        if index != first + number:
            msg = (
                f"{path}: token {action_token(number)} has the id {index}, expected {first + number}: actions come last"
            )
            raise SetupError(msg)
