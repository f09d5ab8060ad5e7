"""Drafts on disk: every kind comes back, published ones are understood, and whatever does not fit is refused."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional as F

from flatrope_planner.errors import InputError, SetupError
from flatrope_planner.speculation.block_draft import BlockDraft, BlockDraftConfig, Places
from flatrope_planner.speculation.checkpoints.eagle import EagleLayout
from flatrope_planner.speculation.checkpoints.layout import AnyConfig, Draft, network_of
from flatrope_planner.speculation.checkpoints.speculators import SpeculatorsLayout
from flatrope_planner.speculation.checkpoints.stored import read_stored, write_stored
from flatrope_planner.speculation.draft_checkpoint import TargetSizes, load_draft, own_layout, save_draft
from flatrope_planner.speculation.eagle_draft import EagleDraft, EagleDraftConfig
from flatrope_planner.speculation.medusa import MedusaConfig
from flatrope_planner.speculation.rotary import RotaryScheme

TARGET = "0123abcd"
BLOCK = BlockDraftConfig(16, 40, (0, 2), block_size=4, heads=2, kv_heads=1, head_dim=12, intermediate=24)
EAGLE = EagleDraftConfig(16, 40, (0, 1, 2), heads=2, kv_heads=1, head_dim=12, intermediate=24)
PLAIN_BLOCK = replace(BLOCK, feature_norm=False, predecessor_rank=0, mask_token=7, norm_eps=1e-5, theta=1e6)
OWN_HEAD = replace(EAGLE, feature_norm=False, own_vocab_size=4, norm_eps=1e-5)
# The tokens that head knows, minus their places.
KNOWN, OFFSET = [3, 5, 11, 39], [3, 4, 9, 36]
CONFIGS: dict[str, AnyConfig] = {
    "block": BLOCK,
    "block with M-RoPE": replace(BLOCK, scheme=RotaryScheme.MROPE, mrope_section=(2, 2, 2)),
    "block without additions": PLAIN_BLOCK,
    "eagle": EAGLE,
    "eagle with M-RoPE": replace(EAGLE, scheme=RotaryScheme.MROPE, mrope_section=(2, 2, 2)),
    "eagle with a head": OWN_HEAD,
    "medusa": MedusaConfig(16, (2,), heads=3),
}


def random_draft(config: AnyConfig) -> Draft:
    """Weights that bfloat16 holds exactly."""
    torch.manual_seed(0)
    draft = network_of(config)
    with torch.no_grad():
        for weight in draft.parameters():
            weight.copy_(torch.randn(weight.shape).to(torch.bfloat16))
        if isinstance(draft, EagleDraft) and draft.own_offset is not None:
            draft.own_offset.copy_(torch.tensor(OFFSET))
    return draft.eval()


def change(directory: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    """Edit the configuration of a saved draft."""
    path = directory / "config.json"
    content = json.loads(path.read_text())
    edit(content)
    path.write_text(json.dumps(content))


def reweigh(directory: Path, edit: Callable[[dict[str, Tensor]], None]) -> None:
    """Edit the weights of a saved draft."""
    path = directory / "model.safetensors"
    weights = {name: value.clone() for name, value in load_file(path).items()}
    edit(weights)
    save_file(weights, path)


@pytest.mark.parametrize("kind", CONFIGS)
def test_every_kind_comes_back(kind: str, tmp_path: Path) -> None:
    draft = random_draft(CONFIGS[kind])
    save_draft(tmp_path / "draft", draft, TARGET)
    found = load_draft(tmp_path / "draft", TARGET, TargetSizes(16, 40, 3))
    assert type(found.draft) is type(draft)
    assert (found.draft.config, found.fingerprint) == (draft.config, TARGET)
    want, got = draft.state_dict(), found.draft.state_dict()
    assert set(got) == set(want)
    assert all(torch.equal(got[name], want[name]) for name in want)
    floats = [value for value in load_file(tmp_path / "draft/model.safetensors").values() if value.is_floating_point()]
    assert {value.dtype for value in floats} == {torch.bfloat16}


@pytest.mark.parametrize("kind", CONFIGS)
def test_another_targets_draft_is_refused(kind: str, tmp_path: Path) -> None:
    save_draft(tmp_path, network_of(CONFIGS[kind]), TARGET)
    with pytest.raises(SetupError, match="a draft for target 0123abcd, but the target is ffff"):
        load_draft(tmp_path, "ffff")
    with pytest.raises(SetupError, match="hidden size 16, expected the target's, 32"):
        load_draft(tmp_path, TARGET, TargetSizes(32, 40, 3))
    with pytest.raises(SetupError, match="tapped layer 2, expected 0 to 1"):
        load_draft(tmp_path, TARGET, TargetSizes(16, 40, 2))


def test_another_vocabulary_is_refused(tmp_path: Path) -> None:
    save_draft(tmp_path, network_of(BLOCK), TARGET)
    with pytest.raises(SetupError, match="vocabulary 40, expected the target's, 41"):
        load_draft(tmp_path, TARGET, TargetSizes(16, 41, 3))


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("hidden_size", "16", "hidden_size is '16', expected a whole number from 1 to 65536"),
        ("hidden_size", True, "hidden_size is True"),
        ("hidden_size", 10**30, "hidden_size is 1000000"),
        ("hidden_size", None, "hidden_size is None"),
        ("num_hidden_layers", 10**6, "num_hidden_layers is 1000000"),
        ("num_key_value_heads", 3, "num_key_value_heads is 3"),
        ("head_dim", 11, "head_dim is 11, expected an even number"),
        ("rope_theta", float("nan"), "rope_theta is nan"),
        ("rms_norm_eps", float("inf"), "rms_norm_eps is inf"),
        ("rope_scaling", {"rope_type": "yarn", "factor": 4}, "rope_scaling.rope_type is 'yarn'"),
        ("rope_scaling", {"mrope_section": [2, 2, 2]}, "flatrope.scheme is 'flat', expected 'mrope'"),
        ("rope_scaling", {"mrope_section": [2, 2, 9]}, "rope_scaling.mrope_section is"),
        ("dflash_config", [], r"dflash_config is \[\], expected an object"),
        ("dflash_config", {"target_layer_ids": [-1]}, "whole numbers from 0 to 1023"),
        ("dflash_config", {"target_layer_ids": [1], "selector_rank": 256}, "selector_rank is 256, expected null or 0"),
        ("layer_types", ["full_attention", "sliding_attention"], "layer_types"),
        ("use_sliding_window", True, "sliding windows cannot be drafted with"),
        ("attention_bias", True, "attention_bias is True, expected null or false"),
        ("hidden_act", "gelu", "hidden_act is 'gelu'"),
        ("architectures", ["Qwen3ForCausalLM"], "architectures is"),
        ("architectures", "DFlashDraftModel", "expected a list of texts"),
        ("flatrope", {"scheme": "flat", "target": "../x\n", "predecessor_rank": 32}, "expected a fingerprint"),
        # More than the weights beside it hold: found before anything is made.
        ("intermediate_size", 200_000, r"gate_proj.weight is BF16 \[24, 16\], expected .* \[200000, 16\]"),
    ],
)
def test_wrong_configurations_are_refused_by_name(name: str, value: object, words: str, tmp_path: Path) -> None:
    save_draft(tmp_path, network_of(BLOCK), TARGET)
    change(tmp_path, lambda content: content.update({name: value}))
    with pytest.raises(SetupError, match=words) as refused:
        load_draft(tmp_path, TARGET)
    assert str(tmp_path) in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b" " * 1_000_001, "more than 1000000 bytes"),
        (b"\xff", "no configuration of a draft"),
        (b"[" * 100_000, "no configuration of a draft"),
        (b"[]", "not an object"),
    ],
)
def test_what_is_no_configuration_is_refused(content: bytes, words: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(SetupError, match=words):
        load_draft(tmp_path, TARGET)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.json")
    with pytest.raises(SetupError, match="not a file"):
        load_draft(tmp_path, TARGET)


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda weights: weights["fc.weight"].fill_(torch.nan), "fc.weight holds values that are not finite"),
        (lambda weights: weights["norm.weight"][0].fill_(torch.inf), "norm.weight holds values that are not finite"),
        (lambda weights: weights.pop("norm.weight"), "has no 'norm.weight'"),
        (lambda weights: weights.update(extra=torch.zeros(1)), "has an unknown 'extra'"),
        (
            lambda weights: weights.update({"norm.weight": torch.zeros(16, dtype=torch.int8)}),
            r"norm.weight is I8 \[16\]",
        ),
        (lambda weights: weights.update({"norm.weight": torch.zeros(17)}), r"norm.weight is F32 \[17\]"),
    ],
)
def test_wrong_weights_are_refused_by_name(
    edit: Callable[[dict[str, Tensor]], None], words: str, tmp_path: Path
) -> None:
    save_draft(tmp_path, network_of(BLOCK), TARGET)
    reweigh(tmp_path, edit)
    with pytest.raises(SetupError, match=words):
        load_draft(tmp_path, TARGET)


def test_a_name_that_no_file_can_have(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"mmm: cannot be looked at \(.*too long.*expected a file"):
        load_draft(tmp_path / ("m" * 300), TARGET)


def test_pickles_are_not_read(tmp_path: Path) -> None:
    save_draft(tmp_path, network_of(BLOCK), TARGET)
    (tmp_path / "model.safetensors").rename(tmp_path / "pytorch_model.bin")
    with pytest.raises(SetupError, match=r"pytorch_model.bin: a pickle, which may run code; convert it to safetensors"):
        load_draft(tmp_path, TARGET)
    (tmp_path / "model.safetensors").write_bytes(b"\x08\x00\x00\x00\x00\x00\x00\x00{broken}")
    with pytest.raises(SetupError, match="no weights of a draft"):
        load_draft(tmp_path, TARGET)


def linked(tmp_path: Path, kept: str, links: str) -> Path:
    """A draft whose files are links to those of another folder, relative as Hugging Face's cache has them."""
    save_draft(tmp_path / kept, network_of(BLOCK), TARGET)
    (tmp_path / links).mkdir(parents=True)
    for name in ("config.json", "model.safetensors"):
        kept_file = tmp_path / kept / name
        (tmp_path / links / name).symlink_to(os.path.relpath(kept_file, tmp_path / links))
    return tmp_path / links


@pytest.mark.parametrize(("kept", "links"), [("model/blobs", "model/snapshots/0a1b"), ("draft/files", "draft")])
def test_links_within_a_folder_and_of_hugging_faces_cache_are_followed(kept: str, links: str, tmp_path: Path) -> None:
    if links in kept:
        save_draft(tmp_path / kept, network_of(BLOCK), TARGET)
        for name in ("config.json", "model.safetensors"):
            (tmp_path / links / name).symlink_to(tmp_path / kept / name)
        folder = tmp_path / links
    else:
        folder = linked(tmp_path, kept, links)
    assert load_draft(folder, TARGET).draft.config == BLOCK
    # However the folder itself is come by: whoever names it has chosen it.
    (tmp_path / "way").symlink_to(folder)
    assert load_draft(tmp_path / "way", TARGET).draft.config == BLOCK
    assert load_draft(folder / ".." / folder.name, TARGET).draft.config == BLOCK


@pytest.mark.parametrize(
    ("kept", "links"), [("kept", "linked"), ("model/blobs", "model/other/0a1b"), ("b", "snapshots/x")]
)
def test_links_that_lead_out_of_a_folder_are_refused(kept: str, links: str, tmp_path: Path) -> None:
    folder = linked(tmp_path, kept, links)
    with pytest.raises(SetupError, match=f"{folder}/config.json: a link to {tmp_path / kept}/config.json, out of its"):
        load_draft(folder, TARGET)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
@pytest.mark.parametrize("goal", ["gone", "itself"])
def test_links_to_nothing_are_named(name: str, goal: str, tmp_path: Path) -> None:
    save_draft(tmp_path, network_of(BLOCK), TARGET)
    (tmp_path / name).unlink()
    (tmp_path / name).symlink_to(name if goal == "itself" else goal)
    with pytest.raises(SetupError, match=f"{name}: a link to .*, where there is nothing"):
        load_draft(tmp_path, TARGET)


# Published layouts, written here as their projects write them.

_QWEN3 = {
    "model_type": "qwen3",
    "hidden_act": "silu",
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 12,
    "vocab_size": 40,
    "rms_norm_eps": 1e-5,
}
Z_LAB = {
    **_QWEN3,
    "architectures": ["DFlashDraftModel"],
    "auto_map": {"AutoModel": "dflash.DFlashDraftModel"},
    "num_hidden_layers": 2,
    "num_target_layers": 36,
    "block_size": 4,
    "layer_types": ["full_attention", "full_attention"],
    "use_sliding_window": False,
    "dflash_config": {"mask_token_id": 7, "target_layer_ids": [0, 2]},
    "rope_theta": 1_000_000,
    "rope_scaling": None,
}
EAGLE3 = {
    **{name: value for name, value in _QWEN3.items() if name != "model_type"},
    "architectures": ["LlamaForCausalLMEagle3"],
    "model_type": "llama",
    "num_hidden_layers": 1,
    "draft_vocab_size": 4,
    "rope_theta": 10_000.0,
}


def layer_weights(prefix: str, inputs: int = 16) -> dict[str, Tensor]:
    shapes = {"q": (24, inputs), "k": (12, inputs), "v": (12, inputs), "o": (16, 24)}
    weights = {f"{prefix}self_attn.{part}_proj.weight": torch.randn(shape) for part, shape in shapes.items()}
    for part, shape in {"gate": (24, 16), "up": (24, 16), "down": (16, 24)}.items():
        weights[f"{prefix}mlp.{part}_proj.weight"] = torch.randn(shape)
    for part in ("input_layernorm", "post_attention_layernorm"):
        weights[f"{prefix}{part}.weight"] = torch.randn(16)
    return weights


def z_lab_weights() -> dict[str, Tensor]:
    torch.manual_seed(1)
    weights = {"fc.weight": torch.randn(16, 32), "hidden_norm.weight": torch.randn(16), "norm.weight": torch.randn(16)}
    for layer in range(2):
        norms = {f"layers.{layer}.self_attn.{part}_norm.weight": torch.randn(12) for part in "qk"}
        weights |= {**layer_weights(f"layers.{layer}."), **norms}
    return weights


def eagle_weights(prefix: str = "midlayer.") -> dict[str, Tensor]:
    torch.manual_seed(2)
    return {
        **layer_weights(prefix, inputs=32),
        f"{prefix}hidden_norm.weight": torch.randn(16),
        "fc.weight": torch.randn(16, 48),
        "norm.weight": torch.randn(16),
        "lm_head.weight": torch.randn(4, 16),
        "d2t": torch.tensor(OFFSET),
        "t2d": torch.zeros(40, dtype=torch.bool).index_fill(0, torch.tensor(KNOWN), True),
    }


def publish(directory: Path, config: dict[str, Any], weights: dict[str, Tensor]) -> Path:
    directory.mkdir(exist_ok=True)
    (directory / "config.json").write_text(json.dumps(config))
    save_file({name: value.contiguous() for name, value in weights.items()}, directory / "model.safetensors")
    return directory


def published(directory: Path, tapped_layers: tuple[int, ...] | None = None) -> Draft:
    stored = read_stored(directory, tapped_layers)
    assert stored.fingerprint is None
    draft = network_of(stored.config)
    draft.load_state_dict(dict(stored.weights))
    return draft.eval()


def rms(value: Tensor, weight: Tensor) -> Tensor:
    return weight * value / (value.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt()


def turned(value: Tensor, places: Tensor, theta: float) -> Tensor:
    """Rotary positions (n,) of vectors (n, 12), pair i turned as a complex number."""
    angle = places[:, None] / theta ** (torch.arange(6) / 6)
    spun = torch.complex(value[:, :6], value[:, 6:]) * torch.polar(torch.ones_like(angle), angle)
    return torch.cat([spun.real, spun.imag], dim=-1)


def places(first: int, last: int) -> Places:
    return Places(torch.arange(first, last)[None], torch.zeros(3, 1, last - first, dtype=torch.int64))


def z_lab_states(weights: dict[str, Tensor], taps: Tensor, block: Tensor) -> Tensor:
    """A DFlash draft by hand, one head at a time: taps (2, T, 16), block (n, 16)."""
    context = rms(torch.cat(list(taps), -1) @ weights["fc.weight"].T, weights["hidden_norm.weight"])
    where, hidden = torch.arange(len(context) + len(block)).float(), block
    for layer in range(2):
        part = {name.removeprefix(f"layers.{layer}."): value for name, value in weights.items()}
        normed = rms(hidden, part["input_layernorm.weight"])
        both = torch.cat([context, normed])
        key = turned(rms(both @ part["self_attn.k_proj.weight"].T, part["self_attn.k_norm.weight"]), where, 1e6)
        heads = []
        for rows in (slice(0, 12), slice(12, 24)):
            query = rms(normed @ part["self_attn.q_proj.weight"][rows].T, part["self_attn.q_norm.weight"])
            weight = (turned(query, where[len(context) :], 1e6) @ key.T / 12**0.5).softmax(-1)
            heads.append(weight @ (both @ part["self_attn.v_proj.weight"].T))
        hidden = hidden + torch.cat(heads, -1) @ part["self_attn.o_proj.weight"].T
        normed = rms(hidden, part["post_attention_layernorm.weight"])
        gate = F.silu(normed @ part["mlp.gate_proj.weight"].T) * (normed @ part["mlp.up_proj.weight"].T)
        hidden = hidden + gate @ part["mlp.down_proj.weight"].T
    return rms(hidden, weights["norm.weight"])


def test_a_published_block_draft_computes_what_its_weights_say(tmp_path: Path) -> None:
    weights = z_lab_weights()
    draft = published(publish(tmp_path, Z_LAB, weights))
    assert draft.config == PLAIN_BLOCK
    assert isinstance(draft, BlockDraft)
    taps, block = torch.randn(2, 5, 16), torch.randn(4, 16)
    with torch.no_grad():
        got = draft(block[None], places(5, 9), draft.context(taps[:, None], places(0, 5)), None)[0]
    torch.testing.assert_close(got, z_lab_states(weights, taps, block), atol=1e-4, rtol=1e-4)
    table = nn.Embedding(40, 16)
    assert torch.equal(draft.mask(table), table.weight[7])


def test_newer_writers_keep_positions_and_block_size_elsewhere(tmp_path: Path) -> None:
    newer = {name: value for name, value in Z_LAB.items() if name not in {"rope_theta", "rope_scaling", "block_size"}}
    newer["rope_parameters"] = {"rope_type": "default", "rope_theta": 1e6}
    newer["dflash_config"] = {"mask_token_id": 7, "target_layer_ids": [0, 2], "block_size": 4}
    assert read_stored(publish(tmp_path, newer, z_lab_weights())).config == PLAIN_BLOCK


def test_a_block_draft_without_a_mask_token_or_tapped_layers_is_refused(tmp_path: Path) -> None:
    publish(tmp_path, {**Z_LAB, "dflash_config": {"target_layer_ids": [0, 2]}}, z_lab_weights())
    with pytest.raises(SetupError, match=r"dflash_config\.mask_token_id is missing"):
        read_stored(tmp_path)
    change(tmp_path, lambda content: content.update(dflash_config={"mask_token_id": 7}))
    with pytest.raises(SetupError, match=r"dflash_config\.target_layer_ids is missing"):
        read_stored(tmp_path)


def test_a_published_draft_is_not_taken_for_anybodys(tmp_path: Path) -> None:
    publish(tmp_path, Z_LAB, z_lab_weights())
    with pytest.raises(SetupError, match="no fingerprint of a target; convert it with"):
        load_draft(tmp_path, TARGET)


def eagle_states(weights: dict[str, Tensor], taps: Tensor, embeds: Tensor) -> Tensor:
    """An EAGLE-3 draft by hand: taps (3, n, 16), embeds (n, 16)."""
    part = {name.removeprefix("midlayer."): value for name, value in weights.items()}
    states = torch.cat(list(taps), -1) @ part["fc.weight"].T
    pair = torch.cat([rms(embeds, part["input_layernorm.weight"]), rms(states, part["hidden_norm.weight"])], -1)
    where = torch.arange(len(pair)).float()
    key, value = turned(pair @ part["self_attn.k_proj.weight"].T, where, 1e4), pair @ part["self_attn.v_proj.weight"].T
    heads = []
    for rows in (slice(0, 12), slice(12, 24)):
        query = turned(pair @ part["self_attn.q_proj.weight"][rows].T, where, 1e4)
        later = torch.ones(len(pair), len(pair)).triu(1).bool()
        heads.append((query @ key.T / 12**0.5).masked_fill(later, -torch.inf).softmax(-1) @ value)
    hidden = states + torch.cat(heads, -1) @ part["self_attn.o_proj.weight"].T
    normed = rms(hidden, part["post_attention_layernorm.weight"])
    gate = F.silu(normed @ part["mlp.gate_proj.weight"].T) * (normed @ part["mlp.up_proj.weight"].T)
    return hidden + gate @ part["mlp.down_proj.weight"].T


def test_a_published_eagle_draft_computes_what_its_weights_say(tmp_path: Path) -> None:
    weights = eagle_weights()
    draft = published(publish(tmp_path, EAGLE3, weights), (0, 1, 2))
    assert draft.config == OWN_HEAD
    assert isinstance(draft, EagleDraft)
    taps, embeds = torch.randn(3, 5, 16), torch.randn(5, 16)
    with torch.no_grad():
        states = draft.fuse(taps[:, None])
        context = draft.keys_and_values(embeds[None], states, places(0, 5))
        mask = torch.full((5, 5), -torch.inf).triu(1)[None, None]
        got = draft(embeds[None], states, places(0, 5), context, mask)[0]
        logits = draft.logits(got, nn.Identity())
    want = eagle_states(weights, taps, embeds)
    torch.testing.assert_close(got, want, atol=1e-3, rtol=1e-4)
    torch.testing.assert_close(
        logits[:, KNOWN], rms(want, weights["norm.weight"]) @ weights["lm_head.weight"].T, atol=1e-3, rtol=1e-4
    )
    assert int(logits.isinf().sum()) == 5 * (40 - 4)


def test_tapped_layers_of_an_eagle_draft_are_read_or_named_but_never_guessed(tmp_path: Path) -> None:
    publish(tmp_path, EAGLE3, eagle_weights())
    with pytest.raises(SetupError, match="name them with --tapped-layers"):
        read_stored(tmp_path)
    assert read_stored(tmp_path, (0, 1, 2)).config.tapped_layers == (0, 1, 2)
    with pytest.raises(SetupError, match=r"fc.weight is F32 \[16, 48\], expected"):
        read_stored(tmp_path, (0, 1))
    change(tmp_path, lambda content: content.update(eagle_config={"eagle_aux_hidden_state_layer_ids": [2, 5, 8]}))
    # What the file says stands.
    assert read_stored(tmp_path, (0, 1, 2)).config.tapped_layers == (2, 5, 8)


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda weights: weights["d2t"].fill_(40), "d2t leads to tokens outside 0 to 39"),
        (lambda weights: weights["d2t"].copy_(torch.tensor([3, 2, 9, 36])), "or to one twice"),
        (lambda weights: weights["t2d"].fill_(False), "t2d does not mark the tokens that d2t leads to"),
    ],
)
def test_vocabularies_that_contradict_themselves_are_refused(
    edit: Callable[[dict[str, Tensor]], None], words: str, tmp_path: Path
) -> None:
    publish(tmp_path, EAGLE3, eagle_weights())
    reweigh(tmp_path, edit)
    with pytest.raises(SetupError, match=words):
        read_stored(tmp_path, (0, 1, 2))


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("rope_scaling", {"type": "mrope", "mrope_section": [2, 2, 2]}, "not interleaved cannot be drafted with"),
        ("rope_scaling", {"rope_type": "llama3", "factor": 8.0}, "rope_scaling.rope_type is 'llama3'"),
        ("norm_output", True, "norm_output is True"),
        ("target_hidden_size", 32, "target_hidden_size is 32, expected null or 16"),
        ("num_hidden_layers", 2, "num_hidden_layers is 2"),
        ("draft_vocab_size", None, "draft_vocab_size is None"),
        ("draft_vocab_size", 41, "draft_vocab_size is 41, expected a whole number from 1 to 40"),
    ],
)
def test_eagle_drafts_that_cannot_be_run_are_refused(name: str, value: object, words: str, tmp_path: Path) -> None:
    publish(tmp_path, {**EAGLE3, name: value}, eagle_weights())
    with pytest.raises(SetupError, match=words):
        read_stored(tmp_path, (0, 1, 2))


def test_mrope_of_a_published_eagle_draft_is_its_own(tmp_path: Path) -> None:
    scaling = {"rope_type": "default", "mrope_section": [2, 2, 2], "mrope_interleaved": True}
    config = read_stored(publish(tmp_path, {**EAGLE3, "rope_scaling": scaling}, eagle_weights()), (0, 1, 2)).config
    assert isinstance(config, EagleDraftConfig)
    assert (config.scheme, config.mrope_section) == (RotaryScheme.MROPE, (2, 2, 2))


SPECULATORS_DFLASH = {
    "architectures": ["DFlashSpeculator"],
    "speculators_model_type": "dflash",
    # What is the default of its model type is left out.
    "transformer_layer_config": {
        **{name: value for name, value in _QWEN3.items() if name != "hidden_act"},
        "num_hidden_layers": 2,
        "rope_parameters": {"rope_type": "default", "rope_theta": 1e6},
    },
    "draft_vocab_size": 40,
    "block_size": 4,
    "aux_hidden_state_layer_ids": [1, 3],
    "mask_token_id": 7,
    "sample_from_anchor": False,
}
SPECULATORS_EAGLE = {
    "architectures": ["Eagle3Speculator"],
    "speculators_model_type": "eagle3",
    "transformer_layer_config": {
        **{name: value for name, value in EAGLE3.items() if name not in {"architectures", "draft_vocab_size"}}
    },
    "draft_vocab_size": 4,
    "fc_norm": True,
    "eagle_aux_hidden_state_layer_ids": [1, 2, 3],
}


def test_speculators_counts_layers_from_the_embeddings_on(tmp_path: Path) -> None:
    tables = {name: torch.randn(40, 16) for name in ("embed_tokens.weight", "lm_head.weight")}
    stored = read_stored(publish(tmp_path / "block", SPECULATORS_DFLASH, {**z_lab_weights(), **tables}))
    assert stored.config == PLAIN_BLOCK
    assert set(stored.borrowed) == set(tables)
    norms = {f"fc_norm.{tap}.weight": torch.randn(16) for tap in range(3)}
    weights = {**eagle_weights("layers.0."), **norms, "embed_tokens.weight": tables["embed_tokens.weight"]}
    stored = read_stored(publish(tmp_path / "eagle", SPECULATORS_EAGLE, weights))
    assert stored.config == replace(OWN_HEAD, feature_norm=True)
    assert torch.equal(stored.weights["feature_norms.2.weight"], norms["fc_norm.2.weight"])
    assert torch.equal(stored.weights["q_proj.weight"], weights["layers.0.self_attn.q_proj.weight"])


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("speculators_model_type", "dflash2", 'speculators_model_type is \'dflash2\', expected "dflash" or "eagle3"'),
        ("draft_vocab_size", 20, "draft_vocab_size is 20, expected 40"),
        ("sample_from_anchor", True, "sample_from_anchor is True"),
        ("aux_hidden_state_layer_ids", [0, 3], "whole numbers from 1 to 1024"),
        ("mask_token_id", 40, "mask_token_id is 40"),
    ],
)
def test_speculators_that_cannot_be_run_are_refused(name: str, value: object, words: str, tmp_path: Path) -> None:
    publish(tmp_path, {**SPECULATORS_DFLASH, name: value}, z_lab_weights())
    with pytest.raises(SetupError, match=words):
        read_stored(tmp_path)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_published_weights_go_through_every_layout_to_the_bit(dtype: torch.dtype, tmp_path: Path) -> None:
    weights = {n: v.to(dtype) if v.is_floating_point() else v for n, v in eagle_weights().items()}
    stored = read_stored(publish(tmp_path / "a", EAGLE3, weights), (0, 1, 2))
    write_stored(tmp_path / "b", replace(stored, fingerprint=TARGET), own_layout(stored.config))
    assert load_draft(tmp_path / "b", TARGET).draft.config == OWN_HEAD
    write_stored(tmp_path / "c", replace(read_stored(tmp_path / "b"), fingerprint=None), SpeculatorsLayout())
    write_stored(tmp_path / "d", read_stored(tmp_path / "c"), EagleLayout())
    back = load_file(tmp_path / "d" / "model.safetensors")
    assert set(back) == set(weights)
    assert all(torch.equal(back[name], weights[name]) and back[name].dtype == weights[name].dtype for name in weights)
    assert read_stored(tmp_path / "d").config == stored.config


@pytest.mark.parametrize("kind", ["block", "eagle", "medusa", "block with M-RoPE"])
def test_a_layout_that_cannot_say_what_a_draft_needs_is_refused(kind: str, tmp_path: Path) -> None:
    save_draft(tmp_path / "draft", network_of(CONFIGS[kind]), TARGET)
    stored = replace(read_stored(tmp_path / "draft"), fingerprint=None)
    with pytest.raises(InputError, match="flatrope's"):
        write_stored(tmp_path / "out", stored, own_layout(stored.config))
    assert not (tmp_path / "out").exists()
