"""Pickles are read for what they describe; what they would do is never done."""

import os
import pickle
import pickletools
from collections import OrderedDict
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from flatrope_planner.errors import InputError, SetupError
from flatrope_planner.vla.checkpoint.inert_arrays import array_of
from flatrope_planner.vla.checkpoint.inert_pickle import Call, Named, read_inert
from flatrope_planner.vla.checkpoint.torch_archive import TorchArchive


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_plain_values_come_back(protocol: int) -> None:
    value = {"a": [1, -7, 2**40, 1.5, True, None], "b": ({"c": "grün"}, (), []), 3: [[1], [2, 3]], "d": (1, 2, 3, 4)}
    assert read_inert(pickle.dumps(value, protocol)) == value


@pytest.mark.parametrize("protocol", [2, 4, 5])
@pytest.mark.parametrize("kind", ["<f4", "<f8"])
def test_arrays_come_back(protocol: int, kind: str) -> None:
    made = np.random.default_rng(0).normal(size=(3, 2, 4)).astype(kind)
    if protocol == 2:
        # Bytes of that protocol are text to be encoded by a call; such files are refused, not guessed at.
        with pytest.raises(InputError, match="expected an array of NumPy"):
            array_of(read_inert(pickle.dumps(made, protocol)))
        return
    assert np.array_equal(array_of(read_inert(pickle.dumps(made, protocol))), made.astype(np.float32))


@pytest.mark.parametrize(
    "other",
    [np.arange(3), np.array(["a"]), np.zeros((2, 3), order="F"), "a", {}, OrderedDict(), Path("a"), None],
    ids=repr,
)
def test_what_is_no_array_of_floats_is_refused(other: object) -> None:
    with pytest.raises(InputError, match="expected an array"):
        array_of(read_inert(pickle.dumps(other)))


class Harmful:
    """Unpickled, it makes a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (self.folder,)


def test_nothing_is_run(tmp_path: Path) -> None:
    folder = tmp_path / "made"
    harmful = pickle.dumps({"token_all": {"veh": Harmful(folder)}})
    described = read_inert(harmful)["token_all"]["veh"]
    assert isinstance(described, Call)
    assert described.function == Named(os.mkdir.__module__, "mkdir")
    assert not folder.exists()
    pickle.loads(harmful)  # noqa: S301  # ours
    assert folder.exists(), "the pickle would have done it"


def test_nothing_that_is_named_is_imported() -> None:
    code = b"cno_such_module_of_anyone\nthing\n(S'x'\ntR."
    pickletools.dis(code, out=StringIO())
    described = read_inert(code)
    assert described.function == Named("no_such_module_of_anyone", "thing")
    assert described.arguments == ("x",)


BROKEN = [
    *(b"", b"no pickle", pickle.dumps([1, 2])[:-3]),
    *(b"\x80\x04h\x05.", b"\x80\x04e.", b"\x80\x02\x8a\x01\x05\x82\x01."),
]


@pytest.mark.parametrize("broken", BROKEN)
def test_broken_pickles_are_one_line(broken: bytes) -> None:
    with pytest.raises(InputError, match="no pickle that can be read without running it"):
        read_inert(broken)


def test_a_text_is_told_from_a_pickle_in_words() -> None:
    with pytest.raises(InputError, match=r"\(a list without a beginning\)"):
        read_inert(b"text\n")


def saved(folder: Path, content: object) -> Path:
    path = folder / "saved.ckpt"
    torch.save(content, path)
    return path


def test_tensors_of_a_checkpoint_come_back_to_the_bit(tmp_path: Path) -> None:
    whole = torch.randn(6, 4)
    weights = OrderedDict(
        plain=whole,
        turned=whole.T,
        part=whole[2:4],
        half=torch.randn(3).bfloat16(),
        parameter=torch.nn.Parameter(torch.randn(2, 2)),
        scalar=torch.tensor(3.0),
    )
    content = {"state_dict": weights, "epoch": 3, "hyper_parameters": {"lr": 0.1}, "optimizer_states": [{"state": {}}]}
    with TorchArchive(saved(tmp_path, content)) as archive:
        assert list(archive.tensors) == list(weights)
        for name, weight in weights.items():
            assert torch.equal(archive.load(name), weight)
            assert archive.load(name).dtype == weight.dtype


def test_archives_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no archive")
    for path, complaint in (
        (tmp_path / "nothing", "No such file"),
        (tmp_path / "text", "File is not a zip file"),
        (saved(tmp_path, {"weights": {}}), "there is no state_dict in it"),
    ):
        with pytest.raises(SetupError, match=complaint) as caught:
            TorchArchive(path)
        assert str(path) in str(caught.value)
    numbers = saved(tmp_path, {"state_dict": {"a": torch.zeros(2, dtype=torch.int64)}})
    with TorchArchive(numbers) as archive, pytest.raises(SetupError, match="a cannot be read"):
        archive.load("a")
