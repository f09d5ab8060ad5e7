"""Where a draft looks while it drafts: at pictures, ego history, other text of the prompt, or what has been written.

The claim that this measures is FlatRoPE's (arXiv:2606.31160): with the target's three-dimensional positions a draft
spends its attention on the large block of image tokens, with positions in a line on history and text.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from flatrope_planner.domain import Floats, Observation, Trajectory
from flatrope_planner.evaluation.decode_contestants import CHAIN_WIDTH, refuse_taken_names
from flatrope_planner.evaluation.nano_weights import check_nano_weights
from flatrope_planner.progress import with_progress
from flatrope_planner.simulation.world import TRAINED_FAMILIES, Split
from flatrope_planner.speculation.block_drafter import Shape
from flatrope_planner.speculation.checkpoints.layout import Draft
from flatrope_planner.speculation.decoder import Decoder
from flatrope_planner.speculation.draft_attention import recorded_attention
from flatrope_planner.speculation.medusa import MedusaHeads
from flatrope_planner.speculation.network_drafter import network_drafter
from flatrope_planner.training.collection import collect
from flatrope_planner.vla.drafting import draft_of, drafts_beside
from flatrope_planner.vla.nano import NanoPrompt, NanoTarget

KINDS = ("visual", "history", "text", "written")


@dataclass(frozen=True)
class AttentionOptions:
    """What to measure."""

    # Moments of one drive of each trained family.
    moments: int = 8
    weights: Path | None = None
    # Further trained drafts by name.
    drafts: Mapping[str, Path] | None = None


def run_attention_budget(options: AttentionOptions) -> dict[str, Any]:
    """Let each draft draft at the same moments of the validation split, and see where its attention goes.

    Raises:
        InputError: when the weights are not nano's, or a further draft has the name of another.
        SetupError: when weights or drafts are missing or do not fit.
    """
    check_nano_weights(options.weights)
    target = NanoTarget.load(options.weights)
    beside, extra = drafts_beside(options.weights), options.drafts or {}
    refuse_taken_names(extra, beside)
    known = {**beside, **extra}
    drafts = {name: draft_of(path, target) for name, path in known.items()}
    attentive = {name: draft for name, draft in drafts.items() if not isinstance(draft, MedusaHeads)}
    prompts = _prompts(target, options.moments)
    kinds = [_kinds(prompt, target) for prompt in prompts]
    shown = with_progress(attentive.items(), len(attentive), "drafts")
    return {
        "drafts": {name: _budget(draft, target, prompts) for name, draft in shown},
        "token_share": _rounded(np.mean([[(of == i).mean() for i in range(len(KINDS))] for of in kinds], axis=0)),
        "prompts": len(prompts),
    }


def table(result: dict[str, Any]) -> str:
    """The shares as text."""
    lines = [f"{'':<24}" + "".join(f"{kind:>10}" for kind in KINDS)]
    rows = {**result["drafts"], "share of the prompt": result["token_share"]}
    lines += [f"{name:<24}" + "".join(f"{row[kind]:>10.1%}" for kind in KINDS) for name, row in rows.items()]
    return "\n".join(lines)


def _prompts(target: NanoTarget, moments: int) -> list[NanoPrompt]:
    prompts: list[NanoPrompt] = []

    def plan(observation: Observation) -> Trajectory:
        prompt = target.prepare(observation)
        prompts.append(prompt)
        (trajectory,) = target.act(Decoder(target, None, CHAIN_WIDTH).decode(prompt).state, None, 1)
        return trajectory

    for family in with_progress(TRAINED_FAMILIES, len(TRAINED_FAMILIES), "drives"):
        enough = len(prompts) + moments
        for _ in collect(family, 0, target.observation_spec, Split.VAL, plan):
            if len(prompts) >= enough:
                break
    return prompts


def _budget(draft: Draft, target: NanoTarget, prompts: list[NanoPrompt]) -> dict[str, float]:
    tapping = target.tapping(draft.config.tapped_layers)
    drafter = network_drafter(draft, target.parts, Shape.CHAIN)
    shares = []
    for prompt in prompts:
        with recorded_attention() as record:
            Decoder(tapping, drafter, CHAIN_WIDTH).decode(prompt)
        kinds = _kinds(prompt, target)
        shares += [_shares(weights, kinds) for weights in record]
    return _rounded(np.mean(shares, axis=0))


def _kinds(prompt: NanoPrompt, target: NanoTarget) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Which of `KINDS` each token of a prompt is."""
    ids = np.array(prompt.token_ids)
    kinds = np.full(len(ids), KINDS.index("text"))
    kinds[ids == target.image_pad] = KINDS.index("visual")
    kinds[list(prompt.pinned)] = KINDS.index("history")
    return kinds


def _shares(weights: Tensor, kinds: np.ndarray[Any, np.dtype[np.int64]]) -> Floats:
    """Part of the attention (1, heads, n, T) on each kind; keys behind the prompt are written, or about to be."""
    of_key = weights[0].mean(dim=(0, 1)).double().numpy()
    known = kinds[: len(of_key)]
    written = len(of_key) - len(known)
    every = np.concatenate([known, np.full(written, KINDS.index("written"))])
    shares: Floats = np.bincount(every, of_key, minlength=len(KINDS)).astype(np.float64)
    return shares


def _rounded(shares: Floats) -> dict[str, float]:
    return {kind: round(float(share), 4) for kind, share in zip(KINDS, shares, strict=True)}
