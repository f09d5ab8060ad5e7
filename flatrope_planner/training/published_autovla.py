"""From what AutoVLA's code reads and writes to a folder that a target is loaded from; no pickle in it is ever run.

AutoVLA's code keeps a codebook as a pickle (`agent_vocab.pkl`), a backbone as transformers saves it, and its own
weights as a checkpoint of PyTorch Lightning (`*.ckpt`), which is a pickle, too.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import yaml
from torch import Tensor

from flatrope_planner.errors import InputError, SetupError, reason
from flatrope_planner.speculation.checkpoints.header import StoredTensor
from flatrope_planner.speculation.checkpoints.weights import write_tensors
from flatrope_planner.vla.autovla.codebook import CODEBOOK_FILE, TENSOR, check_shape, codebook_of
from flatrope_planner.vla.autovla.config import MODEL_TYPE, PREPROCESSOR_FILE, SECTION
from flatrope_planner.vla.autovla.weights import HEAD
from flatrope_planner.vla.checkpoint.fields import Section
from flatrope_planner.vla.checkpoint.files import CONFIG_FILE, read_json
from flatrope_planner.vla.checkpoint.inert_arrays import array_of
from flatrope_planner.vla.checkpoint.inert_pickle import read_inert
from flatrope_planner.vla.checkpoint.torch_archive import TorchArchive
from flatrope_planner.vla.checkpoint.weights import INDEX_FILE
from flatrope_planner.vla.tokenizer import TOKENIZER_FILE

# The published codebook has a hundredth of this.
MOST_CODEBOOK_BYTES = 128 * 2**20
KINDS = "token_all"
# What a Lightning module of AutoVLA, and an adapter around its network, put before a name.
OUTER = ("autovla.", "drivevla.", "vlm.", "base_model.model.")
# Weights of another model, which reinforcement learning compares with.
REFERENCE = "reference_model."
EMBEDDINGS = "embed_tokens.weight"
# Of an adapter (LoRA): what it is around, and its two factors.
BASE, DOWN, UP = ".base_layer.", ".lora_A.default.", ".lora_B.default."
SHARD_BYTES = 4 * 10**9


def convert_codebook(source: Path, folder: Path) -> dict[str, object]:
    """Write `codebook.safetensors` into a folder.

    Args:
        source: `agent_vocab.pkl` as AutoVLA's code writes it.
        folder: of a checkpoint.

    Raises:
        SetupError: when the file holds no codebook.
    """
    try:
        with source.open("rb") as file:
            content = file.read(MOST_CODEBOOK_BYTES + 1)
        if len(content) > MOST_CODEBOOK_BYTES:
            msg = f"more than {MOST_CODEBOOK_BYTES} bytes"
            raise InputError(msg)
        described = read_inert(content)
        kinds = described.get(KINDS) if isinstance(described, dict) else None
        outlines = array_of(kinds.get(TENSOR) if isinstance(kinds, dict) else None)
    except (OSError, InputError) as err:
        msg = f"{source}: no codebook of AutoVLA ({reason(err)}), expected {KINDS} with the outlines of {TENSOR}"
        raise SetupError(msg) from err
    check_shape(source, StoredTensor("F32", outlines.shape))
    actions = len(codebook_of(source, outlines))
    folder.mkdir(parents=True, exist_ok=True)
    write_tensors(folder / CODEBOOK_FILE, {TENSOR: torch.from_numpy(outlines)})
    return {"actions": actions, "steps": outlines.shape[1], "out": str(folder / CODEBOOK_FILE)}


def convert_checkpoint(
    source: Path, backbone: Path, codebook: Path, out: Path, settings: Path | None = None
) -> dict[str, object]:
    """Write a folder that `AutoVlaTarget.load` takes.

    Args:
        source: the checkpoint that training has written.
        backbone: folder of the Qwen2.5-VL that training began with.
        codebook: `agent_vocab.pkl`.
        out: empty or new folder.
        settings: YAML of the training; None: as AutoVLA publishes it, with reasoning.

    Raises:
        InputError: when the folder is not empty.
        SetupError: when a file is missing or not as expected.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        msg = f"{out} is not an empty folder; name one that is, or that is not there yet"
        raise InputError(msg)
    model = _settings(settings)
    scale = _scale(settings, model)
    config = read_json(backbone / CONFIG_FILE)
    if config.get("model_type") != MODEL_TYPE:
        Section(backbone / CONFIG_FILE, config).refuse("model_type", MODEL_TYPE)
    with TorchArchive(source) as archive:
        names = _names(source, archive)
        embeddings = next((name for name in names if name.endswith(EMBEDDINGS)), None)
        if embeddings is None:
            msg = f"{source}: no {EMBEDDINGS} in it, expected the weights of an AutoVLA"
            raise SetupError(msg)
        vocabulary = archive.tensors[names[embeddings]].shape[0]
        if config.get("tie_word_embeddings"):
            names.pop(HEAD, None)
        result = convert_codebook(codebook, out)
        _write_settings(out, backbone, {**config, "vocab_size": vocabulary}, model)
        shards = _write_weights(out, _weights(archive, names, scale), len(names))
    return {**result, "weights": len(names), "vocabulary": vocabulary, "shards": shards, "out": str(out)}


def _settings(path: Path | None) -> dict[str, Any]:
    """The section `model` of AutoVLA's configuration."""
    if path is None:
        return {}
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as err:
        msg = f"{path}: cannot be read ({reason(err)}), expected AutoVLA's configuration in YAML"
        raise SetupError(msg) from err
    model = content.get("model") if isinstance(content, dict) else None
    if not isinstance(model, dict):
        msg = f"{path}: no section model, expected AutoVLA's configuration"
        raise SetupError(msg)
    return model


def _names(source: Path, archive: TorchArchive) -> dict[str, str]:
    """The network's name for each weight -> its name in the archive; factors of adapters left out."""
    names = dict[str, str]()
    for stored in archive.tensors:
        if stored.startswith(REFERENCE) or DOWN in stored or UP in stored:
            continue
        name = stored
        for outer in OUTER:
            name = name.removeprefix(outer)
        names[name.replace(BASE, ".")] = stored
    if not names:
        msg = f"{source}: no weights in it, expected those of an AutoVLA"
        raise SetupError(msg)
    return names


def _scale(path: Path | None, model: dict[str, Any]) -> float:
    """How strongly an adapter acts."""
    lora = model.get("lora")
    section = Section(path or Path(), lora if isinstance(lora, dict) else {}, "model.lora.")
    rank = section.number("r", 8.0)
    if rank <= 0.0:
        section.refuse("r", "a number above zero")
    return section.number("alpha", 8.0) / rank


def _weights(archive: TorchArchive, names: dict[str, str], scale: float) -> Iterator[tuple[str, Tensor]]:
    """Weights one by one, adapters added to what they are around."""
    for name, stored in sorted(names.items()):
        weight = archive.load(stored)
        down, up = (stored.replace(BASE, part) for part in (DOWN, UP))
        if BASE in stored and down in archive.tensors:
            change = archive.load(up).float() @ archive.load(down).float()
            weight = (weight.float() + scale * change).to(weight.dtype)
        yield name, weight


def _write_weights(out: Path, weights: Iterator[tuple[str, Tensor]], count: int) -> int:
    """Files of a few gigabytes, and which weight is in which; how many files."""
    place, shard, held, total = dict[str, str](), dict[str, Tensor](), 0, 0
    files = 0
    for number, (name, weight) in enumerate(weights, 1):
        shard[name], held = weight, held + weight.nbytes
        if held >= SHARD_BYTES or number == count:
            files += 1
            file = f"model-{files:05d}.safetensors"
            write_tensors(out / file, shard)
            place |= dict.fromkeys(shard, file)
            shard, total, held = {}, total + held, 0
    index = {"metadata": {"total_size": total}, "weight_map": place}
    (out / INDEX_FILE).write_text(json.dumps(index, indent=1) + "\n", encoding="utf-8")
    return files


def _write_settings(out: Path, backbone: Path, config: dict[str, Any], model: dict[str, Any]) -> None:
    """Configuration, tokenizer and processor settings."""
    video = model.get("video") if isinstance(model.get("video"), dict) else {}
    own = {"use_cot": bool(model.get("use_cot", True))}
    own |= {key: video[key] for key in ("min_pixels", "max_pixels") if video and key in video}
    if isinstance(config.get("text_config"), dict):
        config = {**config, "text_config": {**config["text_config"], "vocab_size": config["vocab_size"]}}
    (out / CONFIG_FILE).write_text(json.dumps({**config, SECTION: own}, indent=1) + "\n", encoding="utf-8")
    for name in (TOKENIZER_FILE, PREPROCESSOR_FILE):
        if (backbone / name).is_file():
            shutil.copyfile(backbone / name, out / name)
