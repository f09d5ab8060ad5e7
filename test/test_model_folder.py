"""Folders of models that anyone may have made: transformers gets only those that hold what they say."""

import json
import shutil
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file
from test_text_decode_benchmark import complaint, shelf

from flatrope_planner.speculation.checkpoints.model_folder import check_model_folder

__all__ = ["shelf"]


@pytest.fixture
def folder(shelf: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(shelf, tmp_path / "llama"))


def configure(folder: Path, **values: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def split(folder: Path, shard: str) -> None:
    """Its weights in a file of another name, and an index that leads there."""
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    save_file(weights, folder / "model-00001-of-00001.safetensors", metadata={"format": "pt"})
    index = {"metadata": {}, "weight_map": dict.fromkeys(weights, shard)}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def test_weights_are_counted_in_one_file_and_in_several(folder: Path) -> None:
    count = sum(weight.numel() for weight in load_file(folder / "model.safetensors").values())
    assert check_model_folder(folder) == count
    split(folder, "model-00001-of-00001.safetensors")
    assert check_model_folder(folder) == count


@pytest.mark.parametrize("shard", ["../x.safetensors", "/etc/passwd", "a/b.safetensors", "..", ""])
def test_an_index_that_leads_elsewhere_is_refused(shard: str, folder: Path) -> None:
    split(folder, shard)
    assert "is no plain file name" in complaint(folder, "w1")


@pytest.mark.parametrize("content", ["[]", "{", '{"weight_map": 7}', '{"weight_map": {"a": 7}}', "[" * 100_000])
def test_an_index_that_is_none_is_refused(content: str, folder: Path) -> None:
    split(folder, "x")
    (folder / "model.safetensors.index.json").write_text(content)
    assert "model.safetensors.index.json" in complaint(folder, "w1")


def test_a_shard_that_is_not_there_is_named(folder: Path) -> None:
    split(folder, "gone.safetensors")
    assert "gone.safetensors: no weights of a model" in complaint(folder, "w1")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("hidden_size", 10**9, ""),
        ("hidden_size", 4 * 10**5, "weights, but the files beside it hold"),
        ("vocab_size", 10**12, ""),
        ("intermediate_size", 10**9, "weights, but the files beside it hold"),
        ("num_hidden_layers", 10**9, "num_hidden_layers is 1000000000, expected at most 1024"),
        ("num_local_experts", 10**6, "num_local_experts is 1000000, expected at most 1024"),
        ("hidden_size", "many", ""),
        ("hidden_size", -4, ""),
        ("num_attention_heads", 0, ""),
        ("rope_parameters", [[[]]], ""),
        ("auto_map", {"AutoModelForCausalLM": "evil.Model"}, None),
    ],
)
def test_a_configuration_that_asks_for_too_much_is_one_line(
    name: str, value: object, words: str | None, folder: Path
) -> None:
    configure(folder, **{name: value})
    if words is None:
        # Code beside the weights is neither run nor asked for.
        (folder / "evil.py").write_text("raise SystemExit('it was run')")
        assert "token 31" in complaint(folder, "beyond")
    else:
        assert words in complaint(folder, "w1")


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
@pytest.mark.parametrize("goal", ["outside", "gone"])
def test_links_that_lead_elsewhere_are_refused(name: str, goal: str, folder: Path) -> None:
    (folder / name).rename(folder.parent / "outside")
    (folder / name).symlink_to(folder.parent / goal)
    words = complaint(folder, "w1")
    assert "no config.json" in words or f"{name}: a link to" in words


def test_hugging_faces_cache_is_read_as_it_lies(shelf: Path, tmp_path: Path) -> None:
    blobs, revision = tmp_path / "models--a--b/blobs", tmp_path / "models--a--b/snapshots/0123"
    revision.mkdir(parents=True)
    shutil.copytree(shelf, blobs)
    for file in blobs.iterdir():
        (revision / file.name).symlink_to(Path("../../blobs") / file.name)
    assert "token 31" in complaint(revision, "beyond")
