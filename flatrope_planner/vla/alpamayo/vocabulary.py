"""The tokenizer of a checkpoint: the backbone's, with numbers for trajectories and marks between parts of a text."""

import json
from pathlib import Path

from tokenizers import AddedToken, Tokenizer

from flatrope_planner.errors import SetupError
from flatrope_planner.vla.alpamayo.config import TRAJECTORY_MARKS, Release, VocabularyConfig
from flatrope_planner.vla.checkpoint.files import CONFIG_FILE
from flatrope_planner.vla.checkpoint.tokenizer_file import read_tokenizer
from flatrope_planner.vla.tokenizer import QWEN_SPECIALS, TOKENIZER_FILE, VlaTokenizer, history_token

# Marks in the order in which they were added. Alpamayo 1.5 no longer has the last kind, but it keeps their places.
_SHARED = """
prompt_start prompt_end image_start * image_end traj_history_start * traj_history_end cot_start cot_end * *
traj_future_start * traj_future_end traj_history traj_future image_pad * * * *
route_start route_pad route_end question_start question_end answer_start answer_end
"""
_OF_R1 = """
image_pre_tkn traj_history_pre_tkn meta_action_start meta_action_end traj_future_pre_tkn
vectorized_wm vectorized_wm_start vectorized_wm_end vectorized_wm_pre_tkn
"""


def marks_of(release: Release) -> list[str]:
    """All marks of a release, as they are written."""
    own = _OF_R1.split()
    kept = iter(own if release is Release.R1 else [f"_padding_{number}" for number in range(len(own))])
    return [f"<|{next(kept) if name == '*' else name}|>" for name in _SHARED.split()]


def load_vocabulary(checkpoint: Path, backbone: Path, release: Release, expected: VocabularyConfig) -> VlaTokenizer:
    """The checkpoint's own tokenizer; where it has none, the backbone's with the tokens added.

    Raises:
        SetupError: when there is neither, or its tokens are not those that the configuration names.
    """
    own = checkpoint / TOKENIZER_FILE
    path = own if own.is_file() else backbone / TOKENIZER_FILE
    tokenizer = read_tokenizer(path, "the checkpoint or of its backbone")
    if path is own and (backbone / TOKENIZER_FILE).is_file():
        _check_base(path, tokenizer, backbone / TOKENIZER_FILE)
    for mark in QWEN_SPECIALS:
        if tokenizer.token_to_id(mark) is None:
            msg = f"{path}: no token {mark}, expected the tokenizer of a Qwen3-VL"
            raise SetupError(msg)
    # Those that are there already are not added again.
    tokenizer.add_tokens([AddedToken(history_token(number), normalized=True) for number in range(expected.numbers)])
    marks = marks_of(release) if expected.marks_of_text else [f"<|traj_{name}|>" for name in TRAJECTORY_MARKS]
    tokenizer.add_special_tokens([AddedToken(mark, special=True) for mark in marks])
    _check(path, checkpoint / CONFIG_FILE, tokenizer, expected)
    numbers = range(expected.history_start, expected.history_start + expected.history_bins)
    return VlaTokenizer(tokenizer, numbers)


def _check_base(path: Path, tokenizer: Tokenizer, base: Path) -> None:
    """Compare a tokenizer with the one that it has grown out of, which is what NVIDIA's code reads."""
    expected = read_tokenizer(base, "the backbone")
    ids = tokenizer.get_vocab()
    for token, index in expected.get_vocab().items():
        if ids.get(token) != index:
            msg = f"{path}: token {token!r} has the id {ids.get(token)}, expected {index}, as in {base}"
            raise SetupError(msg)
    merges, expected_merges = (json.loads(each.to_str())["model"].get("merges") for each in (tokenizer, expected))
    if merges != expected_merges:
        msg = f"{path}: words are put together in another way than in {base}, expected the same merges"
        raise SetupError(msg)


def _check(path: Path, config: Path, tokenizer: Tokenizer, expected: VocabularyConfig) -> None:
    """Compare a tokenizer with the configuration."""
    first = tokenizer.token_to_id(history_token(0)) if expected.first_number is None else expected.first_number
    wanted = {f"<|traj_{name}|>": index for name, index in expected.marks.items()}
    wanted |= {history_token(number): (first or 0) + number for number in (0, expected.numbers - 1)}
    for token, index in wanted.items():
        found = tokenizer.token_to_id(token)
        if found != index:
            msg = f"{path}: token {token} has the id {found}, expected {index} ({config})"
            raise SetupError(msg)
    size = tokenizer.get_vocab_size()
    if expected.size not in (None, size):
        msg = f"{path}: {size} tokens, expected {expected.size} (vocab_size of {config})"
        raise SetupError(msg)
