"""nano's tokenizer."""

from pathlib import Path

import pytest
from tiny_nano import SENTENCES, tiny_tokenizer

from flatrope_planner.errors import SetupError
from flatrope_planner.vla.tokenizer import COT_END, FUTURE_START, NanoTokenizer, history_token

TOKENIZER = tiny_tokenizer()


@pytest.mark.parametrize("text", [*SENTENCES, "Überholen bei 35 km/h — naïve?", "  two  spaces\nand a line", ""])
def test_text_comes_back_as_it_was(text: str) -> None:
    assert TOKENIZER.decode(TOKENIZER.encode(text)) == text


def test_common_words_are_single_tokens() -> None:
    assert len(TOKENIZER.encode("Keep distance to the van ahead because it is braking.")) == 11


def test_special_tokens_are_single_and_left_out_of_text() -> None:
    ids = TOKENIZER.encode(f"Stop{COT_END}{FUTURE_START}{history_token(999)}")
    assert ids[-3:] == [TOKENIZER.cot_end, TOKENIZER.future_start, TOKENIZER.history_ids[-1]]
    assert TOKENIZER.decode(ids) == "Stop"
    assert TOKENIZER.token_text(TOKENIZER.cot_end) == COT_END


def test_history_bins_are_consecutive() -> None:
    ids = TOKENIZER.history_ids
    assert len(ids) == 1000
    assert [TOKENIZER.special(history_token(i)) for i in (0, 1, 500)] == [ids[0], ids[1], ids[500]]


def test_training_is_deterministic_and_files_hold_everything(tmp_path: Path) -> None:
    TOKENIZER.save(tmp_path)
    loaded = NanoTokenizer.load(tmp_path)
    again = tiny_tokenizer()
    text = SENTENCES[1] + COT_END
    assert loaded.encode(text) == again.encode(text) == TOKENIZER.encode(text)
    assert loaded.size == TOKENIZER.size


def test_a_missing_tokenizer_is_named(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"tokenizer\.json: tokenizer missing"):
        NanoTokenizer.load(tmp_path)
