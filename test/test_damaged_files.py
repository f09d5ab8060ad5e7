"""Files that are cut short, overwritten, or somebody else's: one line that names the file, never a traceback."""

import json
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from test_draft_checkpoint import BLOCK, TARGET
from test_samples import make_sample
from tiny_nano import SIZES, tiny_model, tiny_tokenizer
from torch import Tensor

from flatrope_planner.errors import FlatropeError, InputError, SetupError
from flatrope_planner.speculation.checkpoints.layout import network_of
from flatrope_planner.speculation.checkpoints.stored import StoredDraft, read_stored, write_stored
from flatrope_planner.speculation.draft_checkpoint import own_layout
from flatrope_planner.training.checkpoint import load_checkpoint, save_checkpoint
from flatrope_planner.training.command import train_target
from flatrope_planner.training.export import export
from flatrope_planner.training.options import TargetTrainingOptions
from flatrope_planner.training.replacing import check_replaceable
from flatrope_planner.training.samples import read_shard, shard_path, write_shard
from flatrope_planner.training.target import TargetTrainer
from flatrope_planner.training.traces import read_drive, read_header
from flatrope_planner.vla.config import NanoConfig
from flatrope_planner.vla.nano import NanoTarget


def damaged(whole: bytes) -> Iterator[bytes]:
    """Cut short at places from end to end, and with a stretch overwritten at each of them."""
    for place in np.linspace(0, len(whole) - 1, 12).astype(int):
        yield whole[:place]
        yield whole[:place] + bytes([0xA5] * 40) + whole[place + 40 :]


def only_line(err: BaseException) -> str:
    (line,) = str(err).splitlines()
    assert len(line) < 400
    return line


def test_a_damaged_shard_is_read_or_named_whatever_the_damage(tmp_path: Path) -> None:
    path = tmp_path / "lead.npz"
    write_shard(path, [make_sample(0.5), make_sample(1.0)])
    refused: list[str] = []
    for content in damaged(path.read_bytes()):
        path.write_bytes(content)
        try:
            read_shard(path)
        except InputError as err:
            refused.append(only_line(err))
    assert len(refused) > 12
    assert all(line.startswith(f"{path}: not a shard of training samples, or damaged") for line in refused)


@pytest.mark.parametrize("changed", [{"ends": np.array([10**9])}, {"pictures": np.array([[7, 8], [9, 10]])}])
def test_a_shard_that_contradicts_itself_is_named(tmp_path: Path, changed: dict[str, np.ndarray]) -> None:
    path = tmp_path / "lead.npz"
    write_shard(path, [make_sample(0.5), make_sample(1.0)])
    with np.load(path) as file:
        arrays = {**file, **changed}
    np.savez(path, **arrays)
    with pytest.raises(InputError, match=r"lead\.npz: not a shard"):
        read_shard(path)


@pytest.mark.parametrize(
    "state",
    [
        {"weights": torch.ones(3)},
        {"model": {"w": torch.ones(3)}, "teacher": {}, "optimiser": {}},
        {"model": 7},
        [1, 2],
        torch.ones(2),
    ],
)
def test_a_foreign_checkpoint_is_named(tmp_path: Path, state: object) -> None:
    options = TargetTrainingOptions(tmp_path, tmp_path / "out")
    write_shard(shard_path(options.samples, "lead", 0), [make_sample(0.5)])
    save_checkpoint(tmp_path, state)  # type: ignore[arg-type]
    tokenizer = tiny_tokenizer()
    with pytest.raises(InputError, match=r"checkpoint\.pt: .*; use an empty folder") as caught:
        TargetTrainer(options, NanoConfig(tokenizer.size, **SIZES), tokenizer)  # type: ignore[arg-type]
    only_line(caught.value)


def test_a_checkpoint_of_another_size_is_named(tmp_path: Path) -> None:
    options = TargetTrainingOptions(tmp_path, tmp_path / "out")
    write_shard(shard_path(options.samples, "lead", 0), [make_sample(0.5)])
    tokenizer = tiny_tokenizer()
    config = NanoConfig(tokenizer.size, **SIZES)  # type: ignore[arg-type]
    TargetTrainer(options, config, tokenizer).save()
    with pytest.raises(InputError, match=r"checkpoint\.pt: checkpoint of something else") as caught:
        TargetTrainer(options, replace(config, text_intermediate=96), tokenizer)
    only_line(caught.value)


@pytest.mark.parametrize("stage", ["tokenizer", "train", "practice", "export"])
def test_a_stage_without_what_the_stages_before_it_make_is_one_line(tmp_path: Path, stage: str) -> None:
    with pytest.raises(FlatropeError, match=r"flatrope train target") as caught:
        train_target(TargetTrainingOptions(tmp_path / "work", tmp_path / "out"), stage)
    only_line(caught.value)


@contextmanager
def full_disk() -> Iterator[None]:
    """No file grows beyond a thousand bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_disk_that_is_full_is_one_line_and_keeps_what_was_there(tmp_path: Path) -> None:
    draft = StoredDraft(BLOCK, TARGET, network_of(BLOCK).state_dict())
    write_stored(tmp_path / "draft", draft, own_layout(BLOCK))
    before = {path.name: path.read_bytes() for path in (tmp_path / "draft").iterdir()}
    save_checkpoint(tmp_path, {"step": 1})
    with full_disk():
        for folder in ("draft", "new"):
            with pytest.raises(SetupError, match=rf"{folder}/model\.safetensors: cannot be written \(.*too large"):
                write_stored(tmp_path / folder, draft, own_layout(BLOCK))
        with pytest.raises(SetupError, match=r"checkpoint\.pt: cannot be written; is the disk full\? \("):
            save_checkpoint(tmp_path, {"step": 2, "weights": torch.zeros(1000)})
    assert {path.name: path.read_bytes() for path in (tmp_path / "draft").iterdir()} == before
    assert load_checkpoint(tmp_path) == {"step": 1}
    # Once there is room, nothing is in the way.
    check_replaceable(tmp_path / "new", read_stored, "a draft")
    write_stored(tmp_path / "new", draft, own_layout(BLOCK))
    assert (tmp_path / "new" / "model.safetensors").stat().st_mode & 0o777 == 0o644


def test_untrained_weights_are_not_exported(tmp_path: Path) -> None:
    options = TargetTrainingOptions(tmp_path / "work", tmp_path / "out")
    options.samples.mkdir(parents=True)
    tiny_model().config.save(options.work)
    tiny_tokenizer().save(options.work)
    write_shard(shard_path(options.samples, "lead", 0), [make_sample(0.0)])
    with pytest.raises(InputError, match="nothing has been trained there yet"):
        train_target(options, "export")
    assert not options.out.exists()


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, model = tmp_path_factory.mktemp("weights"), tiny_model()
    export(folder, {n: v.detach() for n, v in model.named_parameters()}, model.config, tiny_tokenizer(), {})
    return folder


def copy_of(weights: Path, folder: Path) -> Path:
    for file in weights.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    return folder


@pytest.mark.parametrize("name", ["tokenizer.json", "config.json", "model.safetensors"])
@pytest.mark.parametrize("content", [b"", b"{", b"\xff\x00\xfe", b"[]", b'"text"', b"7", b"{}", b"null"])
def test_a_damaged_file_of_the_weights_is_named(weights: Path, tmp_path: Path, name: str, content: bytes) -> None:
    folder = copy_of(weights, tmp_path)
    (folder / name).write_bytes(content)
    with pytest.raises(SetupError, match=name) as caught:
        NanoTarget.load(folder)
    only_line(caught.value)


def test_no_field_of_the_configuration_can_make_a_traceback(weights: Path, tmp_path: Path) -> None:
    folder = copy_of(weights, tmp_path)
    whole = json.loads((folder / "config.json").read_text())
    NanoTarget.load(folder)
    refused: list[str] = []
    for field in whole:
        for value in (0, 3, "many", [1], float("nan")):
            (folder / "config.json").write_text(json.dumps({**whole, field: value}))
            try:
                NanoTarget.load(folder)
            except SetupError as err:
                refused.append(only_line(err))
    assert len(refused) > 3 * len(whole)
    assert all("config.json" in line or "model.safetensors" in line for line in refused)


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("tokens", torch.zeros(2, 4)),
        ("prompt", torch.tensor([8])),
        ("positions", torch.zeros(3, 7)),
        ("tapped", torch.zeros(2, 8, 4)),
        ("pinned", torch.tensor([8])),
        ("likeliest", torch.zeros(2, 8)),
        ("log_probability", torch.zeros(3, 7)),
    ],
)
def test_an_array_of_a_trace_that_does_not_fit_is_named(tmp_path: Path, name: str, array: Tensor) -> None:
    whole = {
        "tokens": torch.zeros(8),
        "prompt": torch.tensor([5]),
        "positions": torch.zeros(3, 8),
        "tapped": torch.zeros(2, 7, 4),
        "pinned": torch.tensor([1, 2]),
        "likeliest": torch.zeros(3, 8),
        "log_probability": torch.zeros(3, 8),
    }
    path = tmp_path / "lead.safetensors"
    save_file({f"0.{key}": value for key, value in whole.items()}, path)
    assert len(read_drive(path)) == 1
    save_file({f"0.{key}": value for key, value in {**whole, name: array}.items()}, path)
    with pytest.raises(InputError, match=rf"lead\.safetensors: not .* traces \(0\.{name} does not fit") as caught:
        read_drive(path)
    only_line(caught.value)


@pytest.mark.parametrize("content", [b"", b"[]", b'"text"', b"7", b"{}", b"\xff\x00"])
def test_a_damaged_folder_of_traces_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "traces.json").write_bytes(content)
    (tmp_path / "lead.safetensors").write_bytes(content)
    with pytest.raises(InputError, match=r"traces\.json: no traces") as caught:
        read_header(tmp_path)
    only_line(caught.value)
    with pytest.raises(InputError, match=r"lead\.safetensors: not a file of traces") as caught:
        read_drive(tmp_path / "lead.safetensors")
    only_line(caught.value)
