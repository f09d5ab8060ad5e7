"""`flatrope checkpoint`: says what a draft's files hold, and writes them in the layouts of others."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import torch

from flatrope_planner.errors import FlatropeError, InputError, SetupError
from flatrope_planner.speculation.block_draft import BlockDraftConfig
from flatrope_planner.speculation.checkpoints.block import BlockLayout
from flatrope_planner.speculation.checkpoints.eagle import EagleLayout
from flatrope_planner.speculation.checkpoints.layout import AnyConfig, Layout
from flatrope_planner.speculation.checkpoints.speculators import SpeculatorsLayout
from flatrope_planner.speculation.checkpoints.stored import EMBEDDINGS, HEAD, StoredDraft, read_stored, write_stored
from flatrope_planner.speculation.checkpoints.weights import WEIGHTS_FILE
from flatrope_planner.speculation.draft_checkpoint import check_sizes, own_layout
from flatrope_planner.speculation.eagle_draft import EagleDraftConfig
from flatrope_planner.speculation.medusa import MedusaConfig
from flatrope_planner.vla.target import Running, VlaTarget
from flatrope_planner.vla.targets import find_target, load_target

OURS = "flatrope"
FOREIGN = (BlockLayout.name, SpeculatorsLayout.name, EagleLayout.name)
# Layouts that a kind of draft can be written in.
_CAN_HOLD = {
    BlockDraftConfig: (BlockLayout.name, SpeculatorsLayout.name),
    EagleDraftConfig: (EagleLayout.name, SpeculatorsLayout.name),
    MedusaConfig: (),
}
FAMILIES = {BlockDraftConfig: "block", EagleDraftConfig: "eagle3", MedusaConfig: "medusa"}
BYTES_PER_MEGABYTE = 1e6
# Its weights are compared and copied; a GPU is left to whoever computes there.
IN_MAIN_MEMORY = Running(device="cpu")


def layers_named(text: str | None) -> tuple[int, ...] | None:
    """Tapped layers of the form 1,9,17.

    Raises:
        InputError: for anything else.
    """
    if text is None:
        return None
    parts = text.split(",")
    if not all(part.strip().isdecimal() and len(part.strip()) <= 4 for part in parts):
        msg = f"--tapped-layers is {text!r}, expected layers of the target, counted from 0, as in 1,9,17"
        raise InputError(msg)
    return tuple(int(part) for part in parts)


def inspect_draft(directory: Path, tapped_layers: tuple[int, ...] | None, target_name: str) -> dict[str, object]:
    """What the files of a draft hold, and whether it fits a target.

    Raises:
        SetupError: when they hold no draft that can be used.
    """
    stored = read_stored(directory, tapped_layers)
    floats = [weight for weight in stored.weights.values() if weight.is_floating_point()]
    return {
        **_facts(stored),
        "parameters": sum(weight.numel() for weight in floats),
        "precision": sorted({str(weight.dtype).removeprefix("torch.") for weight in floats}),
        "megabytes": round((directory / WEIGHTS_FILE).stat().st_size / BYTES_PER_MEGABYTE, 2),
        "fits": _fits(directory, stored, target_name),
    }


def convert_draft(
    source: Path, out: Path, layout: str, tapped_layers: tuple[int, ...] | None, target_name: str
) -> dict[str, object]:
    """Write a draft in another layout; its weights stay as they are, to the bit.

    Raises:
        InputError: when the layout cannot hold the draft, or the folder is not empty.
        SetupError: when there is no draft, or it is for another target.
    """
    if layout != OURS and layout not in FOREIGN:
        msg = f"there is no layout {layout!r}; there are {', '.join((OURS, *FOREIGN))}"
        raise InputError(msg)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        msg = f"{out} is not an empty folder; name one that is, or that is not there yet"
        raise InputError(msg)
    stored = read_stored(source, tapped_layers)
    target = load_target(find_target(target_name), running=IN_MAIN_MEMORY)
    _check(source, stored, target, target_name)
    if layout == OURS:
        converted = replace(stored, fingerprint=target.fingerprint, borrowed={})
        write_stored(out, converted, own_layout(stored.config))
    else:
        converted = replace(stored, fingerprint=None, borrowed=_copies(stored.config, layout, target))
        write_stored(out, converted, _foreign(stored.config, layout, target))
    return {**_facts(converted), "layout": layout, "out": str(out)}


def table(result: Mapping[str, object]) -> str:
    """The facts as text."""
    return "\n".join(f"{name.replace('_', ' '):<18}{'-' if value is None else value}" for name, value in result.items())


def _facts(stored: StoredDraft) -> dict[str, object]:
    config = stored.config
    facts: dict[str, object] = {
        "family": FAMILIES[type(config)],
        "hidden": config.hidden,
        "tapped_layers": list(config.tapped_layers),
        "fingerprint": stored.fingerprint,
    }
    if isinstance(config, MedusaConfig):
        return {**facts, "places": config.heads}
    facts |= {
        "vocabulary": config.vocab_size,
        "heads": config.heads,
        "kv_heads": config.kv_heads,
        "head_dim": config.head_dim,
        "intermediate": config.intermediate,
        "scheme": config.scheme.value,
        "rope_theta": config.theta,
        "feature_norm": config.feature_norm,
    }
    if isinstance(config, EagleDraftConfig):
        return {**facts, "own_vocabulary": config.own_vocab_size}
    return {
        **facts,
        "layers": config.layers,
        "block_size": config.block_size,
        "mask_token": config.mask_token,
        "predecessor_rank": config.predecessor_rank,
        "context_tokens": config.context_tokens,
    }


def _fits(directory: Path, stored: StoredDraft, target_name: str) -> str:
    """Whether a draft fits, in words."""
    target = load_target(find_target(target_name), running=IN_MAIN_MEMORY)
    try:
        _check(directory, stored, target, target_name)
    except FlatropeError as err:
        return f"no: {err}"
    return "yes" if stored.fingerprint else "its sizes do; convert it to say so for good"


def _check(directory: Path, stored: StoredDraft, target: VlaTarget, target_name: str) -> None:
    """Refuse a draft that another target's parts or sizes went into.

    Raises:
        SetupError: when it does not fit.
    """
    if stored.fingerprint not in (None, target.fingerprint):
        there = f"the target {target_name} is {target.fingerprint}"
        msg = f"{directory}: a draft for target {stored.fingerprint}, but {there}"
        raise SetupError(msg)
    check_sizes(directory, stored.config, target.sizes)
    parts = {EMBEDDINGS: target.parts.embeddings.weight, HEAD: target.parts.head.get_parameter("weight")}
    for name, copy in stored.borrowed.items():
        # Kept in half the bits as often as not: then both are rounded alike.
        coarser = min(copy.dtype, parts[name].dtype, key=lambda each: each.itemsize)
        if not torch.equal(copy.to(coarser), parts[name].to(coarser)):
            msg = f"{directory / WEIGHTS_FILE}: {name} is not the target's; expected a copy of it, or none"
            raise SetupError(msg)


def _foreign(config: AnyConfig, layout: str, target: VlaTarget) -> Layout:
    if layout not in _CAN_HOLD[type(config)]:
        msg = f"the layout {layout} has no place for a draft of the family {FAMILIES[type(config)]}"
        raise InputError(msg)
    if layout == SpeculatorsLayout.name:
        return SpeculatorsLayout()
    return EagleLayout() if layout == EagleLayout.name else BlockLayout(target.sizes.layers)


def _copies(config: AnyConfig, layout: str, target: VlaTarget) -> dict[str, torch.Tensor]:
    """Parts of the target that the layout keeps beside a draft."""
    if layout != SpeculatorsLayout.name:
        return {}
    copies = {EMBEDDINGS: target.parts.embeddings.weight.detach().to(torch.bfloat16)}
    if isinstance(config, BlockDraftConfig):
        copies[HEAD] = target.parts.head.get_parameter("weight").detach().to(torch.bfloat16)
    return copies
