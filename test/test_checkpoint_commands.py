"""`flatrope checkpoint`: a published draft becomes ours and goes back, for a nano too small to drive."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_nano import tiny_model, tiny_tokenizer

from flatrope_planner.cli import main
from flatrope_planner.speculation.block_draft import BlockDraftConfig
from flatrope_planner.speculation.checkpoints.block import BlockLayout
from flatrope_planner.speculation.checkpoints.layout import network_of
from flatrope_planner.speculation.checkpoints.stored import StoredDraft, write_stored
from flatrope_planner.speculation.draft_checkpoint import load_draft, save_draft
from flatrope_planner.training.export import export
from flatrope_planner.vla.nano import NanoTarget

WEIGHTS = "model.safetensors"


@pytest.fixture(scope="module")
def nano(tmp_path_factory: pytest.TempPathFactory) -> Path:
    model, out = tiny_model(), tmp_path_factory.mktemp("nano")
    export(out, {n: v.detach() for n, v in model.named_parameters()}, model.config, tiny_tokenizer(), {})
    return out


@pytest.fixture(scope="module")
def sizes(nano: Path) -> BlockDraftConfig:
    config = NanoTarget.load(nano).config
    sizes = BlockDraftConfig(config.text_hidden, config.vocab_size, (0, 2), block_size=4, head_dim=12, intermediate=24)
    return replace(sizes, feature_norm=False, predecessor_rank=0, mask_token=7)


def published(folder: Path, sizes: BlockDraftConfig) -> Path:
    torch.manual_seed(0)
    write_stored(folder, StoredDraft(sizes, None, network_of(sizes).state_dict()), BlockLayout(target_layers=3))
    return folder


def same_weights(one: Path, other: Path) -> bool:
    left, right = load_file(one / WEIGHTS), load_file(other / WEIGHTS)
    return set(left) == set(right) and all(torch.equal(left[name], right[name]) for name in left)


def complaint(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    capsys.readouterr()
    assert main(["checkpoint", *argv]) == 2
    printed = capsys.readouterr().err
    assert printed.count("\n") == 1
    return printed


@pytest.mark.parametrize("way", ["z-lab", "speculators"])
def test_a_draft_comes_back_to_a_target_in_full_precision(
    way: str, tmp_path: Path, nano: Path, sizes: BlockDraftConfig
) -> None:
    full = Path(shutil.copytree(nano, tmp_path / "full"))
    weights = load_file(full / "model.safetensors")
    # By less than bfloat16 keeps.
    save_file({name: weight.float() * (1.0 + 2.0**-12) for name, weight in weights.items()}, full / "model.safetensors")
    common = ["--target", str(full)]
    source = published(tmp_path / "theirs", sizes)
    assert main(["checkpoint", "convert", str(source), str(tmp_path / "out"), "--to", way, *common]) == 0
    assert main(["checkpoint", "convert", str(tmp_path / "out"), str(tmp_path / "ours"), *common]) == 0
    assert same_weights(source, tmp_path / "ours")


@pytest.mark.parametrize("way", ["z-lab", "speculators"])
def test_a_draft_comes_back_from_ours_to_the_bit(way: str, tmp_path: Path, nano: Path, sizes: BlockDraftConfig) -> None:
    source = published(tmp_path / "theirs", sizes)
    common = ["--target", str(nano), "--json", str(tmp_path / "result.json")]
    assert main(["checkpoint", "convert", str(source), str(tmp_path / "ours"), *common]) == 0
    fingerprint = NanoTarget.load(nano).fingerprint
    assert load_draft(tmp_path / "ours", fingerprint).draft.config == sizes
    assert json.loads((tmp_path / "result.json").read_text())["fingerprint"] == fingerprint
    assert main(["checkpoint", "convert", str(tmp_path / "ours"), str(tmp_path / "out"), "--to", way, *common]) == 0
    # By way of speculators it brings copies of the target's embeddings and head along, and they are left behind.
    assert main(["checkpoint", "convert", str(tmp_path / "out"), str(tmp_path / "again"), *common]) == 0
    back = ["checkpoint", "convert", str(tmp_path / "again"), str(tmp_path / "back"), "--to", "z-lab", *common]
    assert main(back) == 0
    assert same_weights(source, tmp_path / "back")
    assert json.loads((tmp_path / "back/config.json").read_text()) == json.loads((source / "config.json").read_text())


def test_what_is_inspected(
    tmp_path: Path, nano: Path, sizes: BlockDraftConfig, capsys: pytest.CaptureFixture[str]
) -> None:
    def inspected(folder: Path) -> dict[str, object]:
        argv = ["checkpoint", "inspect", str(folder), "--target", str(nano), "--json", str(tmp_path / "seen.json")]
        assert main(argv) == 0
        seen: dict[str, object] = json.loads((tmp_path / "seen.json").read_text())
        return seen

    seen = inspected(published(tmp_path / "theirs", sizes))
    parameters = sum(weight.numel() for weight in network_of(sizes).parameters())
    expected = {"family": "block", "tapped_layers": [0, 2], "scheme": "flat", "block_size": 4, "mask_token": 7}
    expected |= {"fingerprint": None, "parameters": parameters, "precision": ["float32"], "layers": 2}
    assert expected.items() <= seen.items()
    assert seen["megabytes"] == pytest.approx(4e-6 * parameters, abs=0.02)
    assert "its sizes do" in str(seen["fits"])
    assert "tapped layers     [0, 2]" in capsys.readouterr().out
    save_draft(tmp_path / "mine", network_of(sizes), NanoTarget.load(nano).fingerprint)
    assert inspected(tmp_path / "mine")["fits"] == "yes"
    save_draft(tmp_path / "others", network_of(sizes), "abcd")
    assert "a draft for target abcd" in str(inspected(tmp_path / "others")["fits"])
    # The nano that ships is larger.
    assert main(["checkpoint", "inspect", str(tmp_path / "mine")]) == 0
    assert "no: " in capsys.readouterr().out


def test_what_cannot_be_converted_is_refused(
    tmp_path: Path, nano: Path, sizes: BlockDraftConfig, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = published(tmp_path / "theirs", sizes), str(tmp_path / "out")
    weights = ("--target", str(nano))
    assert "is not an empty folder" in complaint(capsys, "convert", str(source), str(source), *weights)
    assert "there is no layout 'gguf'" in complaint(capsys, "convert", str(source), out, "--to", "gguf")
    assert "no place for a draft" in complaint(capsys, "convert", str(source), out, "--to", "eagle3", *weights)
    assert "expected layers" in complaint(capsys, "convert", str(source), out, "--tapped-layers", "1,two")
    assert "hidden size 48, expected the target's" in complaint(capsys, "convert", str(source), out)
    save_draft(tmp_path / "others", network_of(sizes), "abcd")
    assert "a draft for target abcd" in complaint(capsys, "convert", str(tmp_path / "others"), out, *weights)
    save_draft(tmp_path / "mine", network_of(replace(sizes, predecessor_rank=2)), NanoTarget.load(nano).fingerprint)
    refused = complaint(capsys, "convert", str(tmp_path / "mine"), out, "--to", "z-lab", *weights)
    assert "a predecessor term, which the layout z-lab cannot say" in refused
    tables = {**load_file(source / WEIGHTS), "embed_tokens.weight": torch.zeros(sizes.vocab_size, sizes.hidden)}
    save_file(tables, source / WEIGHTS)
    assert "embed_tokens.weight is not the target's" in complaint(capsys, "convert", str(source), out, *weights)
    assert not Path(out).exists()
