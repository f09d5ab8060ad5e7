"""Values that the configurations of all drafts share: sizes of layers, tapped layers, positions, the target's name."""

import re
from dataclasses import dataclass
from typing import Any

from flatrope_planner.speculation.checkpoints.fields import Fields
from flatrope_planner.speculation.draft_config import DraftConfig
from flatrope_planner.speculation.rotary import RotaryScheme

OURS = "flatrope"
# Nothing larger is a draft: bounds on what a file may ask for.
WIDTHS, VOCABULARIES, COUNTS, LAYER_IDS = range(1, 65_537), range(1, 2_000_001), range(1, 257), range(1024)
MAX_TAPS = 64
# Kinds of rotary positions that are not scaled.
PLAIN = ("default", "mrope", "none")
DEFAULT_EPS, DEFAULT_THETA = 1e-6, 10_000.0


@dataclass(frozen=True)
class Positions:
    """How a draft counts."""

    scheme: RotaryScheme
    theta: float
    mrope_section: tuple[int, ...] | None


def read_sizes(fields: Fields, tapped_layers: tuple[int, ...]) -> dict[str, Any]:
    """The fields of `DraftConfig` that every layout writes alike.

    Raises:
        SetupError: for a value that is missing or that our layers cannot have.
    """
    for name, allowed in (("hidden_act", ("silu", "swish")), ("attention_bias", (False,)), ("mlp_bias", (False,))):
        fields.only(name, None, *allowed)
    if fields.flag("use_sliding_window", default=False):
        fields.refuse("use_sliding_window", "false: sliding windows cannot be drafted with")
    fields.all_are("layer_types", "full_attention")
    heads, kv_heads = fields.integer("num_attention_heads", COUNTS), fields.integer("num_key_value_heads", COUNTS)
    if heads % kv_heads:
        fields.refuse("num_key_value_heads", f"a divisor of num_attention_heads, {heads}")
    hidden = fields.integer("hidden_size", WIDTHS)
    head_dim = fields.integer("head_dim", range(2, 1025), hidden // heads)
    if head_dim % 2:
        fields.refuse("head_dim", "an even number")
    positions = read_positions(fields, head_dim)
    return {
        "hidden": hidden,
        "vocab_size": fields.integer("vocab_size", VOCABULARIES),
        "tapped_layers": tapped_layers,
        "heads": heads,
        "kv_heads": kv_heads,
        "head_dim": head_dim,
        "intermediate": fields.integer("intermediate_size", range(1, 262_145)),
        "scheme": positions.scheme,
        "theta": positions.theta,
        "mrope_section": positions.mrope_section,
        "norm_eps": fields.number("rms_norm_eps", 1e-12, 1e-2, DEFAULT_EPS),
    }


def read_positions(fields: Fields, head_dim: int) -> Positions:
    """How the draft counts, of its own configuration: `rope_parameters` as newer writers have it, or the older two.

    Raises:
        SetupError: for scaled positions, and for sections of M-RoPE that are not interleaved.
    """
    newer = fields.has("rope_parameters")
    where = fields.section("rope_parameters") if newer else fields
    theta = where.number("rope_theta", 1.0, 1e9, fields.number("rope_theta", 1.0, 1e9, DEFAULT_THETA))
    own = fields.section(OURS) if fields.has(OURS) else None
    section = None
    if newer or fields.has("rope_scaling"):
        section = _read_section(where if newer else fields.section("rope_scaling"), head_dim // 2, ours=own is not None)
    scheme = RotaryScheme.FLAT if section is None else RotaryScheme.MROPE
    if own is not None and own.text("scheme") != scheme.value:
        own.refuse("scheme", f"{scheme.value!r}, which is what the rotary sections beside it say")
    return Positions(scheme, theta, section)


def _read_section(rope: Fields, pairs: int, *, ours: bool) -> tuple[int, ...] | None:
    for name in ("rope_type", "type"):
        rope.only(name, None, *PLAIN)
    if not rope.has("mrope_section"):
        return None
    section = rope.integers("mrope_section", range(pairs + 1), 3)
    if len(section) != 3 or sum(section) != pairs:
        rope.refuse("mrope_section", f"three numbers of pairs that add up to {pairs}")
    # Ours always are; elsewhere the older sections stand one behind the other.
    if not rope.flag("mrope_interleaved", default=ours):
        rope.refuse("mrope_interleaved", "true: sections that are not interleaved cannot be drafted with")
    return section


def write_sizes(config: DraftConfig) -> dict[str, Any]:
    """What `read_sizes` reads."""
    section = config.mrope_section
    interleaved = (
        {"rope_type": "default", "mrope_section": list(section), "mrope_interleaved": True} if section else None
    )
    return {
        "hidden_act": "silu",
        "attention_bias": False,
        "hidden_size": config.hidden,
        "intermediate_size": config.intermediate,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.kv_heads,
        "head_dim": config.head_dim,
        "vocab_size": config.vocab_size,
        "rms_norm_eps": config.norm_eps,
        "rope_theta": config.theta,
        "rope_scaling": interleaved,
    }


def read_fingerprint(fields: Fields) -> str | None:
    """The target's name; None in a layout of others.

    Raises:
        SetupError: when our section has none.
    """
    if not fields.has(OURS):
        return None
    own = fields.section(OURS)
    found = own.text("target")
    if not re.fullmatch("[0-9a-f]{1,64}", found):
        own.refuse("target", "a fingerprint")
    return found
