"""Weights and configurations that anyone may have made: nothing is read without end, or believed."""

import json
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from test_damaged_files import copy_of, only_line, weights
from test_draft_checkpoint import BLOCK, TARGET, change

from flatrope_planner.errors import SetupError
from flatrope_planner.speculation.checkpoints import files
from flatrope_planner.speculation.checkpoints.files import MOST_DEPTH, file_in, parse_json, read_json
from flatrope_planner.speculation.checkpoints.header import StoredTensor, read_header
from flatrope_planner.speculation.checkpoints.layout import network_of
from flatrope_planner.speculation.draft_checkpoint import load_draft, save_draft
from flatrope_planner.vla.nano import NanoTarget
from flatrope_planner.vla.targets import find_target, load_target

__all__ = ["weights"]


def write(path: Path, header: object, data: bytes = b"", length: int | None = None) -> Path:
    """A file in the form of safetensors, with whatever header."""
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(raw) if length is None else length) + raw + data)
    return path


def entry(kind: object = "F32", shape: object = (2,), offsets: object = (0, 8)) -> dict[str, object]:
    return {"a": {"dtype": kind, "shape": shape, "data_offsets": offsets}}


def test_a_header_says_what_the_library_reads(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    tensors = {
        "a": torch.ones(2, 3),
        "b": torch.zeros(4, dtype=torch.bfloat16),
        "c": torch.ones(0, 5, dtype=torch.int64),
    }
    save_file(tensors, path, metadata={"format": "pt"})
    assert read_header(path) == {
        "a": StoredTensor("F32", (2, 3)),
        "b": StoredTensor("BF16", (4,)),
        "c": StoredTensor("I64", (0, 5)),
    }


@pytest.mark.parametrize(
    ("header", "data", "length"),
    [
        (entry(), b"", None),
        (entry(shape=(3,)), b"0" * 8, None),
        (entry(shape=(-2,)), b"0" * 8, None),
        (entry(shape=(10**30, 10**30)), b"0" * 8, None),
        (entry(shape=(2.0,)), b"0" * 8, None),
        (entry(shape="2"), b"0" * 8, None),
        (entry(shape=[1] * 17 + [2]), b"0" * 8, None),
        (entry(offsets=(8, 0)), b"0" * 8, None),
        (entry(offsets=(-8, 0)), b"0" * 8, None),
        (entry(offsets=(0,)), b"0" * 8, None),
        (entry(kind="F4000"), b"0" * 8, None),
        (entry(kind=["F32"]), b"0" * 8, None),
        ({"a": [1]}, b"", None),
        ({"a": entry()["a"], "b": entry()["a"]}, b"0" * 8, None),
        ([1], b"", None),
        (b"", b"", None),
        (b"{}", b"", 2**63),
        (b"{}", b"", 3),
        (b"{} " * 6 * 2**20, b"", None),
        (b"[" * 100_000, b"", None),
        (b'{"a":' * 100_000, b"", None),
        (b"\xff\xfe", b"", None),
    ],
)
def test_a_header_that_lies_is_one_line(header: object, data: bytes, length: int | None, tmp_path: Path) -> None:
    path = write(tmp_path / "model.safetensors", header, data, length)
    with pytest.raises(SetupError, match=r"model\.safetensors: no weights of a model \(") as caught:
        read_header(path)
    only_line(caught.value)


@pytest.mark.parametrize("size", [0, 7])
def test_a_file_without_a_header_is_one_line(size: int, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"\0" * size)
    with pytest.raises(SetupError, match="x: no weights of a model"):
        read_header(tmp_path / "x")


@pytest.mark.parametrize("name", ["", ".", "..", "../model.safetensors", "/etc/passwd", "a/b", "a/../../b", "x/"])
def test_names_that_lead_elsewhere_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="is no plain file name"):
        file_in(tmp_path, name)


def test_only_files_are_files(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("folder", "pipe"):
        with pytest.raises(SetupError, match=f"{name}: not a file"):
            file_in(tmp_path, name)
    assert file_in(tmp_path, "absent") == tmp_path / "absent"


def test_json_is_bounded_in_size_and_depth(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(b"[1]")
    assert read_json(path, 3) == [1]
    with pytest.raises(ValueError, match="more than 2 bytes"):
        read_json(path, 2)
    deepest = MOST_DEPTH - 1
    assert parse_json(b"[" * deepest + b"1" + b"]" * deepest)
    for depth in (MOST_DEPTH + 1, 900, 100_000):
        for opening, closing in ((b"[", b"]"), (b'{"a":', b"}")):
            with pytest.raises(ValueError, match="nested deeper than 32 levels"):
                files.parse_json(opening * depth + b"1" + closing * depth)


def test_a_deep_value_of_a_draft_is_one_line(tmp_path: Path) -> None:
    save_draft(tmp_path, network_of(BLOCK), TARGET)
    deep: Any = 1
    for _ in range(500):
        deep = [deep]
    change(tmp_path, lambda content: content.update(hidden_size=deep))
    with pytest.raises(SetupError, match="nested deeper") as caught:
        load_draft(tmp_path, TARGET)
    only_line(caught.value)


@pytest.mark.parametrize(
    "field",
    [
        "text_hidden",
        "text_intermediate",
        "layers",
        "vision_hidden",
        "vision_layers",
        "expert_hidden",
        "frames_per_camera",
    ],
)
@pytest.mark.parametrize("value", [10**9, 60_000, 10**30])
def test_a_configuration_that_asks_for_too_much_takes_no_memory(
    field: str, value: int, weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def taken(*_: object) -> None:
        msg = "memory was taken for it"
        raise AssertionError(msg)

    folder = copy_of(weights, tmp_path)
    content = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**content, field: value}))
    monkeypatch.setattr("flatrope_planner.vla.nano.NanoModel", taken)
    with pytest.raises(SetupError, match=r"config\.json|model\.safetensors") as caught:
        NanoTarget.load(folder)
    only_line(caught.value)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
def test_links_out_of_the_targets_folder_are_refused(name: str, weights: Path, tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    folder = copy_of(weights, tmp_path / "copy")
    (folder / name).unlink()
    (folder / name).symlink_to(weights / name)
    with pytest.raises(SetupError, match=f"{name}: a link to .*, out of its folder"):
        NanoTarget.load(folder)


@pytest.mark.parametrize(
    ("name", "harm"),
    [
        ("config.json", lambda path: path.write_bytes(b" " * 1_000_001)),
        ("config.json", lambda path: path.write_bytes(b"[" * 200_000)),
        ("tokenizer.json", lambda path: os.truncate(path, 64 * 2**20 + 1)),
        ("model.safetensors", lambda path: write(path, b"{}", b"", 2**62)),
    ],
)
def test_files_of_the_target_without_end_are_one_line(
    name: str, harm: Callable[[Path], object], weights: Path, tmp_path: Path
) -> None:
    folder = copy_of(weights, tmp_path)
    harm(folder / name)
    with pytest.raises(SetupError, match=name) as caught:
        NanoTarget.load(folder)
    only_line(caught.value)


@pytest.mark.parametrize("goal", ["/dev/zero", "pipe"])
def test_no_configuration_is_read_without_end(goal: str, weights: Path, tmp_path: Path) -> None:
    folder = copy_of(weights, tmp_path)
    (folder / "config.json").unlink()
    if goal == "pipe":
        os.mkfifo(folder / "config.json")
    else:
        (folder / "config.json").symlink_to(goal)
    for load in (lambda: find_target(str(folder)), lambda: load_target(folder)):
        with pytest.raises(SetupError, match=r"config\.json: (not a file|a link to /dev/zero, out of its folder)"):
            load()
