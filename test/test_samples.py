"""Training samples and their shards."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from training_samples import some_sights, some_situation

from flatrope_planner.domain import Decision
from flatrope_planner.errors import InputError
from flatrope_planner.training.samples import TrainingSample, list_shards, read_shard, shard_path, write_shard
from flatrope_planner.vla.pictures import decode_picture, encode_picture, resize_picture


def make_sample(time_s: float) -> TrainingSample:
    return TrainingSample(
        pictures=(b"older" * 100, b"newer" * 100),
        history_position_m=np.linspace([-15.0, 0, 0], [0, 0, 0], 16),
        history_rotation=np.tile(np.eye(3), (16, 1, 1)),
        rationale="Keep distance to the van ahead.",
        decision=Decision.KEEP,
        action=np.full((64, 2), time_s),
        position_m=np.zeros((64, 3)),
        family="lead",
        seed=7,
        time_s=time_s,
        sights=(some_sights(1), some_sights(2)),
        situation=some_situation(round(10 * time_s)),
    )


def test_shard_gives_back_what_was_written(tmp_path: Path) -> None:
    samples = [make_sample(0.5), replace(make_sample(1.0), command="turn left", decision=Decision.STOP)]
    path = shard_path(tmp_path, "lead", 7)
    assert write_shard(path, samples) == 2
    assert list_shards(tmp_path) == [path]
    for got, want in zip(read_shard(path), samples, strict=True):
        assert got.pictures == want.pictures
        assert (got.rationale, got.decision, got.command) == (want.rationale, want.decision, want.command)
        np.testing.assert_array_equal(got.action, want.action)
        np.testing.assert_array_equal(got.history_position_m, want.history_position_m)
        np.testing.assert_array_equal(got.sights[1].kinds, want.sights[1].kinds)
        np.testing.assert_array_equal(got.sights[1].depth_m, want.sights[1].depth_m)
        np.testing.assert_array_equal(got.situation.value, want.situation.value)


def test_equal_pictures_are_stored_once(tmp_path: Path) -> None:
    write_shard(tmp_path / "a.npz", [make_sample(0.5 * i) for i in range(4)])
    with np.load(tmp_path / "a.npz") as file:
        assert file["blob"].size == 1000


def test_a_broken_shard_is_named(tmp_path: Path) -> None:
    (tmp_path / "b.npz").write_bytes(b"PK garbage")
    with pytest.raises(InputError, match=r"b.npz: not a shard"):
        read_shard(tmp_path / "b.npz")


def test_an_empty_shard_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="0 samples"):
        write_shard(tmp_path / "c.npz", [])


def test_pictures_are_averaged_to_the_targets_size_and_survive_encoding() -> None:
    image = np.zeros((320, 896, 3), dtype=np.uint8)
    image[:, :, 0] = np.linspace(0, 255, 896).astype(np.uint8)
    image[:, ::2, 1] = 200
    small = resize_picture(image)
    assert small.shape == (160, 448, 3)
    assert (small[:, :, 1] == 100).all()
    back = decode_picture(encode_picture(image))
    assert np.abs(back.astype(int) - small).mean() < 2.0


def test_bytes_that_are_no_picture_are_refused() -> None:
    with pytest.raises(InputError, match="neither JPEG nor PNG"):
        decode_picture(b"x" * 50)
