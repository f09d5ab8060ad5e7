"""Capturing and training from the command line, with a nano too small to drive."""

from pathlib import Path

import pytest
from tiny_nano import tiny_model, tiny_tokenizer

from flatrope_planner.cli import main
from flatrope_planner.folder_lock import locked
from flatrope_planner.simulation.world import Family
from flatrope_planner.speculation.block_draft import BlockDraft
from flatrope_planner.speculation.draft_checkpoint import load_draft
from flatrope_planner.training import capture_command
from flatrope_planner.training.export import export
from flatrope_planner.training.traces import write_header
from flatrope_planner.vla.nano import NanoTarget


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    model = tiny_model()
    parts = {name: value.detach() for name, value in model.named_parameters()}
    export(tmp_path / "nano", parts, model.config, tiny_tokenizer(), {})
    return tmp_path / "nano"


def test_from_drives_to_a_draft(
    tmp_path: Path, weights: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(capture_command, "TRAINED_FAMILIES", (Family.CURVE,))
    traces, out = tmp_path / "traces", tmp_path / "draft"
    options = capture_command.CaptureOptions(traces, str(weights), episodes=2, jobs=1)
    header = capture_command.header_of(NanoTarget.load(weights))
    write_header(traces, header)
    for seed in range(2):
        capture_command._capture(capture_command._Drive(Family.CURVE, capture_command.FIRST_SEED + seed, options))
    assert capture_command.capture(options) == {"drives": 2, "captured": 0, "out": str(traces)}
    train = ["train", "draft", "--traces", str(traces), "--target", str(weights), "--work", str(tmp_path / "work")]
    with locked(tmp_path / "work"):
        assert main([*train, "--out", str(out), "--steps", "2", "--block-size", "4"]) == 2
    assert f"another run writes into {tmp_path / 'work'}: wait" in capsys.readouterr().err
    assert main([*train, "--out", str(out), "--steps", "2", "--block-size", "4"]) == 0
    draft = load_draft(out, header.fingerprint).draft
    assert isinstance(draft, BlockDraft)
    assert (draft.config.block_size, draft.config.tapped_layers, draft.config.hidden) == (4, (0, 1, 2), 48)
    assert f"{out}: a draft that is expected to write" in capsys.readouterr().out
    # Weights of these sizes fit, but are of another run, whose steps are all done.
    for option, value, before in (("--scheme", "mrope", "flat"), ("--loss", "kl", "ce"), ("--rate", "0.1", "0.002")):
        assert main([*train, "--out", str(out), "--steps", "2", "--block-size", "4", option, value]) == 2
        line = f"checkpoint of a run with {option[2:]} {before}, not {value}; use an empty folder"
        assert capsys.readouterr().err == f"flatrope: {tmp_path / 'work/checkpoint.pt'}: {line}\n"
    # The model that it was trained for, for instance, would be lost.
    assert main([*train, "--out", str(weights), "--steps", "2", "--block-size", "4"]) == 2
    assert f"--out {weights} holds a model that is not a draft" in capsys.readouterr().err
    assert NanoTarget.load(weights).fingerprint == header.fingerprint
    assert main(["train", "target", "--work", str(tmp_path / "w3"), "--out", str(out)]) == 2
    assert f"--out {out} holds a model that is not a nano" in capsys.readouterr().err
    assert not (tmp_path / "w3").exists()
    assert main([*train[:-2], "--work", str(tmp_path / "w2"), "--traces", str(tmp_path / "none")]) != 0
    assert "no traces" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("kind", "option"), [("eagle3", "--layers"), ("eagle3", "--block-size"), ("medusa", "--context-tokens")]
)
def test_an_option_of_another_kind_is_refused(kind: str, option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "draft", "--kind", kind, option, "4"]) == 2
    assert capsys.readouterr().err == f"flatrope: {option} does not apply to --kind {kind}\n"


def test_positions_do_not_apply_to_medusa(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "draft", "--kind", "medusa", "--scheme", "flat"]) == 2
    assert capsys.readouterr().err == "flatrope: --scheme does not apply to --kind medusa\n"


@pytest.mark.parametrize("option", ["--context-tokens 40", "--scheme mrope"])
def test_what_other_engines_have_no_place_for_is_no_part_of_a_portable_draft(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "draft", "--portable", *option.split()]) == 2
    name, _ = option.split()
    complaint = f"flatrope: {name} does not go with --portable: the layouts of others have no place for it\n"
    assert capsys.readouterr().err == complaint
