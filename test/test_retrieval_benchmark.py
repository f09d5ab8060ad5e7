"""The retrieval benchmark on a made corpus whose rounds can be counted by hand."""

import gzip
import json
from pathlib import Path

import pytest

from flatrope_planner.cli import main
from flatrope_planner.errors import InputError
from flatrope_planner.evaluation.clip_texts import END, read_clips
from flatrope_planner.evaluation.retrieval_benchmark import accepted, run_retrieval_benchmark
from flatrope_planner.speculation.candidates import Candidates

# Two clips without a common token: the corpus never helps.
CLIPS = (
    {"clip": "a", "rationales": ["a b c.", "a b c.", "", "a b c."]},
    {"clip": "e", "rationales": ["x " * 31, "u v"]},
)


def written(path: Path, rows: tuple[object, ...] = CLIPS) -> Path:
    content = "\n".join(json.dumps(row) for row in rows).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def test_words_and_marks_are_tokens_and_texts_end(tmp_path: Path) -> None:
    expected = [((1, 2, 3, 4, END),) * 3, ((6, 7, END),)]
    read = read_clips(written(tmp_path / "clips.jsonl"))
    assert read == read_clips(written(tmp_path / "clips.jsonl.gz"))
    assert [(clip.name, clip.half) for clip in read] == [("a", 0), ("e", 1)]
    clips = [clip.texts for clip in read]
    assert [[len(text) for text in clip] for clip in clips] == [[len(text) for text in clip] for clip in expected]
    assert len(set(clips[0])) == 1
    assert all(text[-1] == END and END not in text[:-1] for clip in clips for text in clip)


def test_tau_is_that_of_counting_rounds_by_hand(tmp_path: Path) -> None:
    # First clip: 4 tokens behind the first, the end token among them. Nothing known: 4 rounds of one bonus token
    # each, save that the other clip's end token is proposed at any place and right at the last: still 4 rounds.
    # Then the text is known: one round, twice. Second clip: 2 rounds. Committed: 4 + 4 + 4 + 2.
    result = run_retrieval_benchmark(written(tmp_path / "clips.jsonl"), jobs=1)
    assert result["rounds"] == {"chain16": 8, "tree32": 8, "tree64": 8}
    assert result["tau"] == {"chain16": 14 / 8, "tree32": 14 / 8, "tree64": 14 / 8}
    # The corpus alone never helps: 3 * 4 + 2 rounds; the drive alone does all of it.
    assert result["ablation"] == {"corpus_only": 1.0, "drive_only": 14 / 8}
    assert result["folds"]["tree32"]["tau"] == [2.0, 1.0]
    assert [(half["clips"], half["tau"]["tree32"]) for half in result["halves"]] == [(1, 2.0), (1, 1.0)]
    assert (result["texts"], result["clips"], result["mean_tokens"]) == (4, 2, (3 * 5 + 3) / 4)


def test_acceptance_follows_one_branch() -> None:
    tree = Candidates((1, 2, 5, 3), (-1, -1, 1, 0), ("x",) * 4)
    assert [accepted(tree, text) for text in ([2, 5, 7], [1, 5], [3], [1, 3], [])] == [2, 1, 0, 2, 0]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ((), "0 clips with 0 texts"),
        (CLIPS[:1], "1 clips with 3 texts"),
        (({"rationales": [""]},) * 2, "2 clips with 0 texts"),
        ((CLIPS[0], [1]), "line 2: expected a JSON object"),
        (({"rationales": "a b"},), "line 1: expected a JSON object"),
        (({"rationales": [1]},), "line 1: expected a JSON object"),
    ],
)
def test_broken_files_are_refused(tmp_path: Path, rows: tuple[object, ...], words: str) -> None:
    with pytest.raises(InputError, match=words):
        run_retrieval_benchmark(written(tmp_path / "clips.jsonl", rows), jobs=1)


@pytest.mark.parametrize(
    ("name", "content"), [("a.gz", b"plain"), ("a.jsonl", b"\xff"), ("a.gz", gzip.compress(b"x", mtime=0)[:9])]
)
def test_files_that_cannot_be_read_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, content: bytes
) -> None:
    (tmp_path / name).write_bytes(content)
    for path in (tmp_path / name, tmp_path / "missing"):
        assert main(["bench", "retrieval", "--corpus", str(path)]) == 2
        printed = capsys.readouterr()
        assert "cannot be read as rationales" in printed.err
        assert printed.err.count("\n") == 1
