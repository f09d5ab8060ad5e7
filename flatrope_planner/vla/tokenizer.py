"""Byte-level BPE tokenizers with Qwen's, Alpamayo's and the ego-history tokens; nano learns its own from rationales."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from flatrope_planner.errors import SetupError, reason
from flatrope_planner.speculation.checkpoints.files import file_in

TOKENIZER_FILE = "tokenizer.json"
# Those of the largest models have a third of this.
MOST_BYTES = 64 * 2**20

# Bytes and merges; every word a narrator uses often becomes one token.
LEARNT_TOKENS = 1024
HISTORY_BINS = 1000

END_OF_TEXT = "<|endoftext|>"
IM_START = "<|im_start|>"
IM_END = "<|im_end|>"
VISION_START = "<|vision_start|>"
VISION_END = "<|vision_end|>"
IMAGE_PAD = "<|image_pad|>"
HISTORY_START = "<|traj_history_start|>"
HISTORY_END = "<|traj_history_end|>"
COT_START = "<|cot_start|>"
COT_END = "<|cot_end|>"
FUTURE_START = "<|traj_future_start|>"
ROUTE_START = "<|route_start|>"
ROUTE_END = "<|route_end|>"

QWEN_SPECIALS = (END_OF_TEXT, IM_START, IM_END, VISION_START, VISION_END, IMAGE_PAD)
ALPAMAYO_SPECIALS = (HISTORY_START, HISTORY_END, COT_START, COT_END, FUTURE_START, ROUTE_START, ROUTE_END)

# Words with their leading space, single digits, punctuation.
_WORDS = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+"


def history_token(index: int) -> str:
    """The token of one bin of the ego history."""
    return f"<i{index}>"


def train_tokenizer(texts: Iterable[str]) -> Tokenizer:
    """Learn the merges from texts; the result is the same for the same texts in the same order."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_WORDS), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=LEARNT_TOKENS,
        min_frequency=2,
        show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
    )
    tokenizer.train_from_iterator(texts, trainer)
    bins = [history_token(i) for i in range(HISTORY_BINS)]
    tokenizer.add_special_tokens(
        [AddedToken(token, special=True) for token in (*QWEN_SPECIALS, *bins, *ALPAMAYO_SPECIALS)]
    )
    return tokenizer


class TextTokenizer:
    """Text <-> ids, with the special tokens by name."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Wrap a tokenizer."""
        self._tokenizer = tokenizer
        self.size: int = tokenizer.get_vocab_size()

    def special(self, token: str) -> int:
        """The id of a token written as it is.

        Raises:
            SetupError: when the tokenizer has no such token.
        """
        index = self._tokenizer.token_to_id(token)
        if index is None:
            msg = f"tokenizer: no token {token}; it belongs to another model"
            raise SetupError(msg)
        return int(index)

    def encode(self, text: str) -> list[int]:
        """Ids of a text; special tokens in it become their ids."""
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def decode(self, ids: Sequence[int], *, marks: bool = False) -> str:
        """Text of ids, special tokens left out unless `marks` are wanted."""
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=not marks))

    def token_text(self, token: int) -> str:
        """Text of one token, special or not."""
        return str(self._tokenizer.decode([token], skip_special_tokens=False))


class VlaTokenizer(TextTokenizer):
    """Also knows the marks of Alpamayo's layout."""

    def __init__(self, tokenizer: Tokenizer, history_numbers: range = range(HISTORY_BINS)) -> None:
        """Wrap a tokenizer in which `<i..>` of these numbers are the bins of the ego history.

        Raises:
            SetupError: when a token that the layout needs is missing.
        """
        super().__init__(tokenizer)
        self.image_pad = self.special(IMAGE_PAD)
        self.future_start = self.special(FUTURE_START)
        self._history_numbers = history_numbers
        self.history_offset = self.special(self.history_token(0))

    @property
    def cot_end(self) -> int:
        """The token that ends a rationale's text.

        Raises:
            SetupError: when marks of text are words like others.
        """
        return self.special(COT_END)

    @property
    def ending(self) -> tuple[int, int]:
        """The tokens behind a rationale; a trajectory follows."""
        return self.cot_end, self.future_start

    @property
    def history_ids(self) -> range:
        """Ids of the ego-history bins, in order."""
        return range(self.history_offset, self.history_offset + len(self._history_numbers))

    def history_token(self, index: int) -> str:
        """The token of one bin of the ego history."""
        return history_token(self._history_numbers[index])


class NanoTokenizer(VlaTokenizer):
    """The tokenizer that `train_tokenizer` makes."""

    @classmethod
    def load(cls, directory: Path) -> "NanoTokenizer":
        """Read `tokenizer.json`.

        Raises:
            SetupError: when there is none, or none of nano.
        """
        path = file_in(directory, TOKENIZER_FILE)
        if not path.exists():
            msg = f"{path}: tokenizer missing; train one with `flatrope train target`"
            raise SetupError(msg)
        if path.stat().st_size > MOST_BYTES:
            msg = f"{path}: {path.stat().st_size} bytes, a tokenizer has at most {MOST_BYTES}"
            raise SetupError(msg)
        try:
            tokenizer = Tokenizer.from_file(str(path))
        except Exception as err:  # the library raises nothing more special
            msg = f"{path}: damaged ({reason(err)}); train one with `flatrope train target`"
            raise SetupError(msg) from err
        return cls(tokenizer)

    def save(self, directory: Path) -> None:
        """Write `tokenizer.json`."""
        self._tokenizer.save(str(directory / TOKENIZER_FILE))
