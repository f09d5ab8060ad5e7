"""What block and EAGLE-3 drafts have in common: their target, the shape of a layer, and how positions are counted."""

from dataclasses import KW_ONLY, dataclass

from flatrope_planner.speculation.rotary import RotaryScheme


@dataclass(frozen=True)
class LayerShape:
    """Sizes of a layer of attention and perceptron."""

    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int


@dataclass(frozen=True)
class DraftConfig:
    """Sizes of a draft's layers, and which target it is for."""

    # The target's.
    hidden: int
    vocab_size: int
    # Layers of the target whose hidden states the draft reads, counted from 0: the state *behind* layer i.
    tapped_layers: tuple[int, ...]
    _: KW_ONLY
    heads: int = 6
    kv_heads: int = 2
    head_dim: int = 32
    intermediate: int = 512
    # The draft's own, whatever the target's is.
    scheme: RotaryScheme = RotaryScheme.FLAT
    theta: float = 10_000.0
    mrope_section: tuple[int, ...] | None = None
    norm_eps: float = 1e-6
    # Whether each tapped state is normalised by itself before they are fused (EAGLE 3.1, arXiv:2605.09992).
    feature_norm: bool = True
