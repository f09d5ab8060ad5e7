"""From the files that AutoVLA's code writes to a folder that is loaded: codebook, checkpoint, adapters."""

import json
import math
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tiny_autovla import ACTIONS, CASES, config_of, observation, outlines, tokenizer, write_checkpoint, write_json

from flatrope_planner.cli import main
from flatrope_planner.errors import SetupError
from flatrope_planner.speculation.decoder import Decoder
from flatrope_planner.training.published_autovla import convert_checkpoint, convert_codebook
from flatrope_planner.vla.autovla.codebook import Codebook
from flatrope_planner.vla.autovla.target import AutoVlaTarget
from flatrope_planner.vla.target import Running


def pickled_codebook(folder: Path, **kinds: object) -> Path:
    path = folder / "agent_vocab.pkl"
    path.write_bytes(pickle.dumps({"token_all": {"veh": outlines(), "ped": outlines(4), **kinds}}))
    return path


def test_a_codebook_is_written_anew(tmp_path: Path) -> None:
    source = pickled_codebook(tmp_path)
    assert main(["checkpoint", "codebook", str(source), str(tmp_path / "out")]) == 0
    codebook = Codebook.load(tmp_path / "out")
    assert np.array_equal(codebook.outline_m, outlines()[:, -1])
    # Codebooks that AutoVLA's later code makes have a single step.
    convert_codebook(pickled_codebook(tmp_path, veh=outlines(steps=1)), tmp_path / "out")
    assert np.array_equal(Codebook.load(tmp_path / "out").outline_m, outlines(steps=1)[:, -1])


@pytest.mark.parametrize(
    ("veh", "complaint"),
    [
        ([1, 2], "expected an array of NumPy, rows first"),
        (outlines()[:, 0], r"veh is F32 \[96, 4, 2\], expected F32 \[actions, steps, 4, 2\]"),
        (outlines() * np.float32(math.nan), "veh holds a number that is not finite"),
    ],
    ids=["list", "shape", "nan"],
)
def test_what_is_no_codebook_is_one_line(tmp_path: Path, veh: object, complaint: str) -> None:
    source = pickled_codebook(tmp_path, veh=veh)
    with pytest.raises(SetupError, match=complaint) as caught:
        convert_codebook(source, tmp_path / "out")
    assert str(source) in str(caught.value)
    assert not (tmp_path / "out").exists()
    assert main(["checkpoint", "codebook", str(tmp_path / "nothing.pkl"), str(tmp_path / "out")]) == 2


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint as it should come out, and the files that AutoVLA's code would have had in its place."""
    folder = tmp_path_factory.mktemp("published")
    write_checkpoint(folder / "expected")
    pickled_codebook(folder)
    (folder / "backbone").mkdir()
    base = tokenizer(0)
    base.save(str(folder / "backbone" / "tokenizer.json"))
    # The backbone knows no actions, and has rows to spare, as Qwen2.5-VL has.
    content = {**config_of(base), "vocab_size": base.get_vocab_size() + 40}
    content.pop("autovla")
    write_json(folder / "backbone" / "config.json", content)
    shutil.copy(folder / "expected" / "preprocessor_config.json", folder / "backbone")
    model = {"use_cot": False, "video": {"min_pixels": 4704, "max_pixels": 9408}, "lora": {"r": 2, "alpha": 6}}
    write_json(folder / "settings.yaml", {"model": model})
    return folder


def write_ckpt(path: Path, weights: dict[str, torch.Tensor]) -> Path:
    reference = {"reference_model.vlm.visual.merger.ln_q.weight": torch.zeros(3)}
    torch.save({"epoch": 4, "state_dict": {**weights, **reference}, "hyper_parameters": {"config": {}}}, path)
    return path


def text_of(folder: Path) -> tuple[int, ...]:
    target = AutoVlaTarget.load(folder, running=Running(device="cpu"))
    target.token_budget = 12
    return Decoder(target, None, 8).decode(target.prepare(observation(CASES["standing"]))).token_ids


def test_a_trained_checkpoint_is_written_anew(whole: Path, tmp_path: Path) -> None:
    stored = load_file(whole / "expected" / "model.safetensors")
    weights = {f"autovla.vlm.{name}": value for name, value in stored.items()}
    weights["autovla.vlm.lm_head.weight"] = weights["autovla.vlm.model.embed_tokens.weight"]
    source = write_ckpt(tmp_path / "last.ckpt", weights)
    command = ["checkpoint", "autovla", str(source), str(tmp_path / "out"), "--backbone", str(whole / "backbone")]
    assert main([*command, "--codebook", str(whole / "agent_vocab.pkl")]) == 0
    content = json.loads((tmp_path / "out" / "config.json").read_text())
    assert content["vocab_size"] == tokenizer(0).get_vocab_size() + ACTIONS
    assert content["autovla"] == {"use_cot": True}
    changed = {**content, "autovla": {"use_cot": True, "min_pixels": 4704, "max_pixels": 9408}}
    write_json(tmp_path / "out" / "config.json", changed)
    assert text_of(tmp_path / "out") == text_of(whole / "expected")
    # Not into a folder that is in use.
    assert main([*command, "--codebook", str(whole / "agent_vocab.pkl")]) == 2


def test_adapters_are_added_to_what_they_are_around(whole: Path, tmp_path: Path) -> None:
    stored = load_file(whole / "expected" / "model.safetensors")
    name = "model.layers.1.self_attn.q_proj.weight"
    down, up = torch.randn(2, 64), torch.randn(64, 2)
    outer = "autovla.vlm.base_model.model."
    weights = {outer + each: value for each, value in stored.items() if each != name}
    around = outer + name.removesuffix("weight")
    weights |= {
        f"{around}base_layer.weight": stored[name] - 3.0 * up @ down,
        f"{around}lora_A.default.weight": down,
        f"{around}lora_B.default.weight": up,
    }
    source = write_ckpt(tmp_path / "last.ckpt", weights)
    result = convert_checkpoint(
        source, whole / "backbone", whole / "agent_vocab.pkl", tmp_path / "out", whole / "settings.yaml"
    )
    written = load_file(tmp_path / "out" / "model-00001.safetensors")
    assert result["weights"] == len(written) == len(stored)
    torch.testing.assert_close(written[name], stored[name], atol=1e-4, rtol=1e-4)
    own = json.loads((tmp_path / "out" / "config.json").read_text())["autovla"]
    assert own == {"use_cot": False, "min_pixels": 4704, "max_pixels": 9408}


def test_checkpoints_of_something_else(whole: Path, tmp_path: Path) -> None:
    source = write_ckpt(tmp_path / "other.ckpt", {"net.weight": torch.zeros(3)})
    with pytest.raises(SetupError, match=r"other\.ckpt: no embed_tokens\.weight in it"):
        convert_checkpoint(source, whole / "backbone", whole / "agent_vocab.pkl", tmp_path / "out")
    with pytest.raises(SetupError, match=r"nowhere/config\.json: expected a JSON file of the checkpoint"):
        convert_checkpoint(source, tmp_path / "nowhere", whole / "agent_vocab.pkl", tmp_path / "out")
    write_json(tmp_path / "config.json", {"model_type": "alpamayo_r1"})
    with pytest.raises(SetupError, match=r"config\.json: model_type is 'alpamayo_r1', expected qwen2_5_vl"):
        convert_checkpoint(source, tmp_path, whole / "agent_vocab.pkl", tmp_path / "out")
    for lora, complaint in (
        ("r: 0", r"model\.lora\.r is 0, expected a number above zero"),
        ("alpha: strong", r"model\.lora\.alpha is 'strong', expected a number"),
    ):
        (tmp_path / "settings.yaml").write_text(f"model: {{lora: {{{lora}}}}}")
        with pytest.raises(SetupError, match=rf"settings\.yaml: {complaint}"):
            convert_checkpoint(
                source, whole / "backbone", whole / "agent_vocab.pkl", tmp_path / "out", tmp_path / "settings.yaml"
            )
    (tmp_path / "settings.yaml").write_text("model: 3")
    with pytest.raises(SetupError, match=r"settings\.yaml: no section model"):
        convert_checkpoint(
            source, whole / "backbone", whole / "agent_vocab.pkl", tmp_path / "out", tmp_path / "settings.yaml"
        )
    assert not (tmp_path / "out").exists()
