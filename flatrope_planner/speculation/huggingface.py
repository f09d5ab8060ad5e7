"""Any decoder-only model of transformers as a target: text models, and Qwen3-VL with its pictures."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from flatrope_planner.errors import InputError, SetupError
from flatrope_planner.speculation.candidates import Block
from flatrope_planner.speculation.slots import PATH_ATTENTION, CacheShape, Layout, SlotCache, cache_argument
from flatrope_planner.speculation.target import Prefill, StepResult


@dataclass(frozen=True)
class ModelPrompt:
    """A request to a model."""

    token_ids: tuple[int, ...]
    # What else the model wants for these tokens: pictures and the like.
    inputs: Mapping[str, Tensor] = field(default_factory=dict)
    # int64 (axes, tokens): rotary positions, None for the sequence index; three axes for M-RoPE.
    positions: Tensor | None = None

    # Indices of tokens that a draft always sees.
    pinned: tuple[int, ...] = ()

    def rotary_positions(self) -> Tensor:
        """int64 (3, tokens)."""
        positions = torch.arange(len(self.token_ids))[None] if self.positions is None else self.positions
        return positions.expand(3, -1)

    @property
    def rope_delta(self) -> int:
        """What is added to the sequence index of a token behind the prompt to get its position."""
        return 0 if self.positions is None else int(self.positions.max()) + 1 - len(self.token_ids)


@dataclass
class ModelState:
    """What a model has read of one request."""

    cache: SlotCache
    rope_delta: int
    unread: int = 0

    @property
    def length(self) -> int:
        """Committed tokens."""
        return self.cache.length


class CausalLMTarget:
    """A model whose greedy continuation is the truth. Holds nothing of a request."""

    def __init__(
        self,
        model: PreTrainedModel,
        ending: Sequence[int],
        token_budget: int,
        *,
        decode: Callable[[Sequence[int]], str] = str,
        forbidden: Sequence[int] = (),
        tapped_layers: tuple[int, ...] = (),
    ) -> None:
        """Wrap a model.

        Args:
            model: a causal language model of transformers, on its device and at its precision.
            ending: end marks that are appended when the budget ends a text; the last one is the stop token.
            token_budget: most tokens of a text, end marks not counted.
            decode: token ids -> text.
            forbidden: tokens that are never written.
            tapped_layers: layers whose hidden states a drafter wants.

        Raises:
            SetupError: when the model cannot attend over slots.
        """
        self._model, self._decode, self._tapped_layers = model.eval(), decode, tapped_layers
        self._trunk = model.get_decoder()
        config = self._trunk.config
        _require_plain_attention(config)
        self._trunk.set_attn_implementation(PATH_ATTENTION)
        head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        self._shape = CacheShape(
            config.num_hidden_layers, config.num_key_value_heads, head_dim, model.dtype, str(model.device)
        )
        self.ending, self.stop_token, self.token_budget = tuple(ending), ending[-1], token_budget
        self.eos_tokens = frozenset[int]()
        pictures = (getattr(model.config, f"{kind}_token_id", None) for kind in ("image", "video"))
        self._placeholders = {token for token in pictures if token is not None}
        self.forbidden = torch.zeros(config.vocab_size, dtype=torch.bool)
        self.forbidden[list(forbidden)] = True
        self.forbidden = self.forbidden.to(model.device)

    @torch.inference_mode()
    def prefill(self, prompt: ModelPrompt, block: Block) -> tuple[ModelState, Prefill]:
        """Read a prompt; see `Target.prefill`.

        Raises:
            InputError: when there is no token to continue from.
        """
        before = len(prompt.token_ids) - 1
        if before < 0:
            msg = "prompt: no tokens, expected at least one"
            raise InputError(msg)
        cache = SlotCache(self._shape, before, 1 + self.token_budget + len(self.ending))
        state = ModelState(cache, prompt.rope_delta)
        positions = torch.arange(before)[None] if prompt.positions is None else prompt.positions[:, :-1]
        behind = (torch.from_numpy(block.offsets) + before + state.rope_delta).expand(len(positions), -1)
        # A candidate that looks like a picture's placeholder would be taken for one.
        candidates = [token if token not in self._placeholders else block.tokens[0] for token in block.tokens]
        rows = _Rows((*prompt.token_ids[:-1], *candidates), torch.cat([positions, behind], dim=1), cache.layout(block))
        inputs = {name: value.to(self._model.device) for name, value in prompt.inputs.items()}
        out = self._read(self._model.base_model, rows, cache, inputs)
        cache.keep(range(before + 1))
        tapped = self._tapped(out)
        return state, Prefill(tapped[:, :before], StepResult(self._logits(out, before), tapped[:, before:]))

    @torch.inference_mode()
    def step(self, state: ModelState, block: Block) -> StepResult:
        """Read a block; see `Target.step`."""
        positions = torch.from_numpy(block.offsets)[None] + state.length + state.rope_delta
        if state.rope_delta:
            positions = positions.expand(3, -1)
        out = self._read(self._trunk, _Rows(block.tokens, positions, state.cache.layout(block)), state.cache, {})
        return StepResult(self._logits(out, 0), self._tapped(out))

    @torch.inference_mode()
    def commit(self, state: ModelState, kept: Sequence[int]) -> None:
        """Keep rows of the last block."""
        state.cache.keep(kept)

    def text(self, tokens: Sequence[int]) -> str:
        """Text without end marks."""
        return self._decode([token for token in tokens if token not in self.ending])

    def token_text(self, token: int) -> str:
        """One token."""
        return self._decode([token])

    def _read(self, module: nn.Module, rows: "_Rows", cache: SlotCache, inputs: Mapping[str, Tensor]) -> object:
        """One pass of the trunk, or of the whole that also sees pictures."""
        device = self._model.device
        return module(
            input_ids=torch.tensor([rows.ids], device=device),
            position_ids=_for_model(rows.positions, device),
            # Four axes, so that it is taken as it is; what is seen stands in the layout.
            attention_mask=torch.zeros(1, 1, 1, 1, dtype=self._model.dtype, device=device),
            layout=rows.layout,
            output_hidden_states=bool(self._tapped_layers),
            **{cache_argument(type(module).forward): cache},
            **inputs,
        )

    def _logits(self, out: object, first: int) -> Tensor:
        """Of the rows from `first` on."""
        hidden: Tensor = out.last_hidden_state[0, first:]  # type: ignore[attr-defined]
        logits: Tensor = self._model.get_output_embeddings()(hidden)
        return logits

    def _tapped(self, out: object) -> Tensor:
        # The list of hidden states begins with the embeddings.
        levels = [out.hidden_states[layer + 1][0] for layer in self._tapped_layers]  # type: ignore[attr-defined]
        if levels:
            return torch.stack(levels)
        hidden: Tensor = out.last_hidden_state[0]  # type: ignore[attr-defined]
        return hidden.new_empty(0, *hidden.shape)


@dataclass(frozen=True)
class _Rows:
    """What one pass reads."""

    ids: tuple[int, ...]
    # int64 (axes, n).
    positions: Tensor
    layout: Layout


def _require_plain_attention(config: object) -> None:
    """Refuse models in which a token does not see all tokens before it through keys and values."""
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    if kinds != {"full_attention"}:
        msg = f"model: layers of {', '.join(sorted(kinds))}; only full_attention can be verified in blocks"
        raise SetupError(msg)
    # Mistral and Phi-3 say it of the whole model instead of each layer.
    window = getattr(config, "sliding_window", None)
    if not getattr(config, "layer_types", None) and window is not None:
        msg = f"model: sliding_window is {window}; only full attention, sliding_window null, can be verified in blocks"
        raise SetupError(msg)
    if not hasattr(config, "num_key_value_heads"):
        msg = f"model: {type(config).__name__} has no num_key_value_heads, expected a model like Llama or Qwen3"
        raise SetupError(msg)


def _for_model(positions: Tensor, device: torch.device) -> Tensor:
    """(axes, n) -> (1, n) for one axis, else (axes, 1, n)."""
    return positions.to(device) if len(positions) == 1 else positions[:, None].to(device)
