"""Files of corpora: written and read again; a broken one is one clear line."""

import os
from pathlib import Path

import pytest

from flatrope_planner.errors import InputError
from flatrope_planner.speculation import rationale_corpus
from flatrope_planner.speculation.contexts import BEGINNING
from flatrope_planner.speculation.rationale_corpus import RationaleCorpus

TEXTS = [(3, 1, 2), (4, 2), (3, 1, 2), ()]


def test_a_corpus_is_read_as_it_was_written(tmp_path: Path) -> None:
    corpus = RationaleCorpus.of(TEXTS)
    assert corpus.counts == (((3, 1, 2), 2), ((4, 2), 1))
    corpus.save(tmp_path / "corpus.json")
    assert RationaleCorpus.load(tmp_path / "corpus.json") == corpus
    RationaleCorpus().save(tmp_path / "empty.json")
    assert RationaleCorpus.load(tmp_path / "empty.json") == RationaleCorpus()


def test_repeated_texts_are_counted_as_often() -> None:
    first = dict(RationaleCorpus.of(TEXTS).context_counts().behind(()))
    assert first[1, BEGINNING].weights == {3: 2.0, 4: 1.0}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "cannot be read"),
        ("[" * 100_000, "cannot be read"),
        ("[]", 'no list "rationales"'),
        ('{"rationales": 3}', 'no list "rationales"'),
        ('{"rationales": [[1, 2], [1]]}', "rationale 1 is"),
        ('{"rationales": [[0, 2]]}', "rationale 0 is"),
        ('{"rationales": [[1, -2]]}', "rationale 0 is"),
        ('{"rationales": [[1' + "0" * 400 + ", 2]]}", "rationale 0 is"),
        ('{"rationales": [[1, true]]}', "rationale 0 is"),
        ('{"rationales": [[1, 2.5]]}', "rationale 0 is"),
        ('{"rationales": ["Keep going."]}', "rationale 0 is"),
    ],
)
def test_a_broken_file_is_refused_by_name(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "corpus.json"
    path.write_text(content)
    with pytest.raises(InputError, match=words) as caught:
        RationaleCorpus.load(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("token", [5, 2**70])
def test_tokens_that_the_target_has_not_are_refused(tmp_path: Path, token: int) -> None:
    path = tmp_path / "corpus.json"
    RationaleCorpus.of([(4, 2), (token, 2)]).save(path)
    with pytest.raises(InputError, match=rf"{path}: token {token}, expected the target's, 0 to 4"):
        RationaleCorpus.load(path, vocab_size=5)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "corpus.json")
    with pytest.raises(InputError, match="not a file"):
        RationaleCorpus.load(tmp_path / "corpus.json")


def test_missing_binary_and_oversized_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "corpus.json"
    with pytest.raises(InputError, match="cannot be read"):
        RationaleCorpus.load(path)
    path.write_bytes(b"\xff\x00")
    with pytest.raises(InputError, match="cannot be read"):
        RationaleCorpus.load(path)
    monkeypatch.setattr(rationale_corpus, "MOST_BYTES", 20)
    with pytest.raises(InputError, match="at most 20"):
        RationaleCorpus.of(TEXTS).save(path)
    path.write_text(" " * 21)
    with pytest.raises(InputError, match="21 bytes"):
        RationaleCorpus.load(path)
