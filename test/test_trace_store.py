"""Traces as one sequence, of which only so much is in memory."""

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
import torch

from flatrope_planner.errors import InputError
from flatrope_planner.training import trace_store
from flatrope_planner.training.trace_store import TraceStore
from flatrope_planner.training.traces import Trace, count_traces, read_drive, read_trace, write_drive

PROMPT, LENGTH, HIDDEN = 20, 30, 64


def trace(seed: int) -> Trace:
    random = torch.Generator().manual_seed(seed)
    return Trace(
        tokens=torch.randint(100, (LENGTH,), generator=random, dtype=torch.int32),
        prompt=PROMPT,
        positions=torch.arange(LENGTH, dtype=torch.int32).expand(3, -1).contiguous(),
        tapped=torch.randn(2, LENGTH - 1, HIDDEN, generator=random).bfloat16(),
        pinned=torch.tensor([3, 4], dtype=torch.int32),
        likeliest=torch.randint(100, (LENGTH - PROMPT, 8), generator=random, dtype=torch.int32),
        log_probability=torch.randn(LENGTH - PROMPT, 8, generator=random),
    )


@pytest.fixture
def drives(tmp_path: Path) -> list[Path]:
    """Two, three and one text."""
    paths = []
    for drive, seeds in enumerate(([0, 1], [2, 3, 4], [5])):
        paths.append(tmp_path / f"{drive}.safetensors")
        write_drive(paths[-1], [trace(seed) for seed in seeds])
    return paths


def same(one: Trace, other: Trace) -> bool:
    pairs = ((getattr(one, field.name), getattr(other, field.name)) for field in fields(Trace))
    return all(torch.equal(torch.as_tensor(mine), torch.as_tensor(theirs)) for mine, theirs in pairs)


@pytest.mark.parametrize("most_bytes", [0, 20_000, 2**30])
def test_every_trace_is_at_its_place_whatever_is_remembered(drives: list[Path], most_bytes: int) -> None:
    store = TraceStore(drives, most_bytes)
    assert [count_traces(path) for path in drives] == [2, 3, 1]
    assert len(store) == 6
    for index in np.random.default_rng(0).integers(-6, 6, 40):
        assert same(store[int(index)], trace(int(index) % 6))
    assert all(same(got, trace(seed)) for got, seed in zip(store[1:6:2], (1, 3, 5), strict=True))
    assert all(same(got, trace(seed)) for seed, got in enumerate(store))
    with pytest.raises(IndexError):
        store[6]


def test_no_more_is_remembered_than_allowed(drives: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    reads = list[int]()

    def counted(path: Path, number: int) -> Trace:
        reads.append(number)
        return read_trace(path, number)

    monkeypatch.setattr(trace_store, "read_trace", counted)
    size = trace(0).size_bytes
    # Two layers of 29 states of 64 numbers make most of it.
    assert 2 * 29 * 64 * 2 < size < 2 * 2 * 29 * 64 * 2
    store = TraceStore(drives, 2 * size)
    assert not reads
    for index in (0, 1, 0, 1, 2, 1, 0):
        _ = store[index]
    # The third is read, the first of the two used last goes.
    assert reads == [0, 1, 0, 0]
    assert store._held_bytes == 2 * size == sum(held.size_bytes for held in store._held.values())
    alone = TraceStore(drives, 0)
    for index in (0, 0, 1):
        _ = alone[index]
    assert len(alone._held) == 1


def test_what_is_read_does_not_keep_its_file(drives: list[Path]) -> None:
    got = read_trace(drives[1], 1)
    write_drive(drives[1], [trace(9)])
    assert same(got, trace(3))
    assert len(read_drive(drives[1])) == 1


def test_a_damaged_drive_is_named_before_anything_is_trained(drives: list[Path]) -> None:
    content = drives[1].read_bytes()
    drives[1].write_bytes(content[:-100])
    with pytest.raises(InputError, match=r"1\.safetensors: not a file of traces"):
        TraceStore(drives)
