"""From traces to a corpus and to drafts of every kind, from the command line."""

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest
from tiny_weights import TAPS, write_traces, write_weights

from flatrope_planner.cli import main
from flatrope_planner.errors import InputError
from flatrope_planner.speculation.block_draft import BlockDraft
from flatrope_planner.speculation.checkpoints.layout import Draft
from flatrope_planner.speculation.draft_checkpoint import load_draft
from flatrope_planner.speculation.eagle_draft import EagleDraft
from flatrope_planner.speculation.medusa import MedusaHeads
from flatrope_planner.speculation.rationale_corpus import RationaleCorpus
from flatrope_planner.training.traces import Trace, TraceHeader, read_header
from flatrope_planner.vla.nano import NanoTarget

Made = tuple[Path, TraceHeader, list[list[Trace]]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NanoTarget, "token_budget", 12)
        header, drives = write_traces(folder / "traces", write_weights(folder / "nano"))
    return folder, header, drives


def test_texts_become_a_corpus(made: Made, tmp_path: Path) -> None:
    folder, _, drives = made
    out = tmp_path / "new" / "rationales.json"
    assert main(["train", "corpus", "--traces", str(folder / "traces"), "--out", str(out)]) == 0
    wanted = Counter(tuple(trace.tokens[trace.prompt :].tolist()) for drive in drives for trace in drive)
    assert dict(RationaleCorpus.load(out).counts) == wanted
    assert sum(wanted.values()) == 6


@pytest.mark.parametrize(("name", "value"), [("hidden", "x"), ("rope_theta", None), ("tapped_layers", 5)])
def test_a_header_of_other_types_is_one_line(made: Made, tmp_path: Path, name: str, value: object) -> None:
    content = json.loads((made[0] / "traces" / "traces.json").read_text())
    (tmp_path / "traces.json").write_text(json.dumps({**content, name: value}))
    with pytest.raises(InputError, match=rf"traces.json: no traces \({name} is '{value}'\)"):
        read_header(tmp_path)


def test_weights_are_no_traces_and_leave_the_corpus_as_it_was(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(made[0] / "nano" / "model.safetensors", tmp_path)
    out = tmp_path / "rationales.json"
    out.write_text("as it was")
    assert main(["train", "corpus", "--traces", str(tmp_path), "--out", str(out)]) == 2
    assert "not a file of traces (no trace in it)" in capsys.readouterr().err
    assert out.read_text() == "as it was"
    assert main(["train", "corpus", "--traces", str(made[0] / "traces"), "--out", str(tmp_path)]) == 2
    assert "is a folder, expected a file" in capsys.readouterr().err


def test_without_traces_there_is_no_corpus(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "corpus", "--traces", str(tmp_path), "--out", str(tmp_path / "x.json")]) != 0
    assert "flatrope capture" in capsys.readouterr().err
    assert not (tmp_path / "x.json").exists()


@pytest.mark.parametrize(("kind", "network"), [("eagle3", EagleDraft), ("medusa", MedusaHeads), ("block", BlockDraft)])
def test_every_kind_is_trained(kind: str, network: type[Draft], made: Made, tmp_path: Path) -> None:
    folder, header, _ = made
    options = {
        "--kind": kind,
        "--traces": str(folder / "traces"),
        "--target": str(folder / "nano"),
        "--work": str(tmp_path / "work"),
        "--out": str(tmp_path / "draft"),
        "--steps": "2",
        "--jobs": "1",
    }
    if kind != "eagle3":
        options["--block-size"] = "4"
    assert main(["train", "draft", *(word for pair in options.items() for word in pair)]) == 0
    draft = load_draft(tmp_path / "draft", header.fingerprint).draft
    assert type(draft) is network
    assert (draft.config.hidden, draft.config.tapped_layers) == (48, TAPS)
    if isinstance(draft, MedusaHeads):
        # The anchor is none of the guesses.
        assert draft.config.heads == 3
        assert any(weight.abs().max() > 0.0 for weight in draft.parameters())
