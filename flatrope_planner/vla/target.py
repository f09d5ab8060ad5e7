"""What all targets share: a Qwen3-VL reads pictures and ego history, writes a rationale, and an expert acts on it.

A target with other parts is a subclass and a line in `vla.targets` (docs/targets.md).
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import Qwen3VLForConditionalGeneration

from flatrope_planner.dimensions import FUTURE_POINTS
from flatrope_planner.domain import Observation, ObservationSpec, Trajectory
from flatrope_planner.errors import InputError, reason
from flatrope_planner.speculation.borrowed import BorrowedParts
from flatrope_planner.speculation.candidates import Block
from flatrope_planner.speculation.draft_checkpoint import TargetSizes
from flatrope_planner.speculation.fingerprint import fingerprint
from flatrope_planner.speculation.slots import PATH_ATTENTION, CacheShape, Layout, SlotCache
from flatrope_planner.speculation.target import Prefill, StepResult
from flatrope_planner.vla.cache import KeyValues
from flatrope_planner.vla.reading import Reader, Reading
from flatrope_planner.vla.request import VlaPrompt, VlaState
from flatrope_planner.vla.tokenizer import VlaTokenizer
from flatrope_planner.vla.vision import VisionFeatures

T = TypeVar("T", bound="VlaTarget")

# By their names in configurations and parameters.
PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16}
# The parameter's word for `Running.quantised`.
INT8 = "int8"
# Layers of 36.
DRAFT_DEPTHS = (24, 30, 31, 32, 34)
NO_GUIDANCE = 1.0


@dataclass(frozen=True)
class Running:
    """How a target is to be run."""

    # Cameras by name; None: the target's own.
    cameras: tuple[str, ...] | None = None
    # None: that of the weights.
    precision: torch.dtype | None = None
    # As PyTorch calls it, or "auto": a GPU where there is one.
    device: str = "auto"
    # How much more than by itself an action follows the route (Alpamayo 1.5); 1: no more.
    guidance: float = NO_GUIDANCE
    # Whether the text model's weights are rounded to eight bits.
    quantised: bool = False

    def place(self) -> torch.device:
        """The device.

        Raises:
            InputError: for one that is not there.
        """
        if self.device == "auto":
            return torch.device("cuda" if torch.cuda.is_available() else "cpu")
        try:
            device = torch.device(self.device)
        except RuntimeError as err:
            msg = f"device is {self.device!r}, expected auto, cpu or cuda ({reason(err)})"
            raise InputError(msg) from err
        if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
            msg = f"device is {self.device!r}, but PyTorch sees {torch.cuda.device_count()} GPUs"
            raise InputError(msg)
        return device


@dataclass(frozen=True)
class Room:
    """Most tokens that there is room for."""

    prompt: int
    # Of the rationale, end marks not counted.
    rationale: int


class VlaTarget(ABC):
    """Holds nothing of a request. See `speculation.target.Target` for its part in decoding."""

    token_budget: int

    def __init__(
        self,
        reader: Reader,
        tokenizer: VlaTokenizer,
        forbidden: range,
        room: Room,
        tapped_layers: tuple[int, ...] = (),
    ) -> None:
        """Wrap a trained Qwen3-VL, to be run where its weights are and at their precision.

        Args:
            reader: the network.
            tokenizer: its tokenizer.
            forbidden: tokens that are never written.
            room: for prompt and rationale.
            tapped_layers: text layers whose hidden states a drafter wants.
        """
        self._reader, self._tokenizer, self._tapped_layers, self._room = reader, tokenizer, tapped_layers, room
        text, weight = reader.vlm.config.text_config, reader.vlm.lm_head.weight
        self._cache_shape = CacheShape(
            text.num_hidden_layers, text.num_key_value_heads, text.head_dim, weight.dtype, str(weight.device)
        )
        reader.vlm.model.language_model.set_attn_implementation(PATH_ATTENTION)
        self.stop_token = tokenizer.future_start
        self.ending: tuple[int, ...] = (tokenizer.cot_end, tokenizer.future_start)
        self.eos_tokens = frozenset[int]()
        self.forbidden = torch.zeros(tokenizer.size, dtype=torch.bool)
        self.forbidden[forbidden.start : forbidden.stop] = True
        self.forbidden = self.forbidden.to(self.device)

    @abstractmethod
    def tapping(self: T, layers: tuple[int, ...]) -> T:
        """The same target, showing the hidden states behind these text layers."""

    @property
    @abstractmethod
    def observation_spec(self) -> ObservationSpec:
        """Cameras and frames that `prepare` wants."""

    @abstractmethod
    def prepare(self, observation: Observation) -> VlaPrompt:
        """Encode the pictures that are new and lay out the prompt.

        Raises:
            InputError: when the observation is not what `observation_spec` asks for.
        """

    @property
    def draft_layers(self) -> tuple[int, ...]:
        """Layers that a draft is best shown: the last ones, of deep models those that the prior art found to tell most.

        Those are 24, 30, 31, 32 and 34 of 36 (yihao-liang/alpamayo-dflash).
        """
        layers = self.sizes.layers
        if layers < len(DRAFT_DEPTHS) * 2:
            return tuple(range(max(layers - 3, 0), layers))
        return tuple(sorted({depth * layers // 36 for depth in DRAFT_DEPTHS}))

    @abstractmethod
    def trajectories(self, state: VlaState, noise: Tensor) -> tuple[Trajectory, ...]:
        """The trajectories that grow out of noise (samples, 64, 2) behind a finished rationale."""

    @property
    def vlm(self) -> Qwen3VLForConditionalGeneration:
        """The text and vision model itself: what transformers would run."""
        return self._reader.vlm

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        device: torch.device = self.vlm.lm_head.weight.device
        return device

    @property
    def image_pad(self) -> int:
        """The token that stands for a patch of a picture."""
        return self._tokenizer.image_pad

    @property
    def sizes(self) -> TargetSizes:
        """What a draft must agree with."""
        text = self.vlm.config.text_config
        return TargetSizes(text.hidden_size, text.vocab_size, text.num_hidden_layers)

    @property
    def mrope_section(self) -> tuple[int, ...]:
        """Rotary pairs of time, height and width."""
        return tuple(self.vlm.config.text_config.rope_parameters["mrope_section"])

    @property
    def rope_theta(self) -> float:
        """Base of the rotary frequencies."""
        return float(self.vlm.config.text_config.rope_parameters["rope_theta"])

    @property
    def fingerprint(self) -> str:
        """Name of the target's weights, the action expert's left out: no draft knows them."""
        return fingerprint(self.vlm)

    @property
    def parts(self) -> BorrowedParts:
        """What drafts borrow."""
        return BorrowedParts(self.vlm.get_input_embeddings(), self.vlm.model.language_model.norm, self.vlm.lm_head)

    @torch.inference_mode()
    def prefill(self, prompt: VlaPrompt, block: Block) -> tuple[VlaState, Prefill]:
        """Read a prompt; see `Target.prefill`.

        Raises:
            InputError: when the prompt is too long.
        """
        ids, positions = prompt.tokens.ids, prompt.tokens.positions
        if len(ids) > self._room.prompt:
            msg = f"prompt: {len(ids)} tokens, more than {self._room.prompt}; use a shorter command"
            raise InputError(msg)
        before = len(ids) - 1
        # Behind the prompt's last token there is room for the rationale and its end.
        cache = SlotCache(self._cache_shape, before, 1 + self._room.rationale + len(self.ending))
        state = VlaState(cache, prompt.tokens.rope_delta, prompt.speed_mps, prompt.height_m)
        rows = Rows(
            np.concatenate([ids[:-1], block.tokens]),
            np.concatenate([positions[:, :-1], _positions(block, before + state.rope_delta)], axis=1),
            cache.layout(block),
        )
        reading = self._read(state, rows, prompt.features)
        cache.keep(range(len(ids)))
        logits = self.vlm.lm_head(reading.hidden[0, before:])
        return state, Prefill(reading.tapped[:, 0, :before], StepResult(logits, reading.tapped[:, 0, before:]))

    @torch.inference_mode()
    def step(self, state: VlaState, block: Block) -> StepResult:
        """Read a block; see `Target.step`."""
        positions = _positions(block, state.length + state.rope_delta)
        reading = self._read(state, Rows(np.array(block.tokens), positions, state.cache.layout(block)))
        return StepResult(self.vlm.lm_head(reading.hidden[0]), reading.tapped[:, 0])

    @torch.inference_mode()
    def commit(self, state: VlaState, kept: Sequence[int]) -> None:
        """Keep rows of the last block."""
        state.cache.keep(kept)

    def guide(self, state: VlaState, prompt: VlaPrompt, written: Sequence[int]) -> None:
        """Read what acting needs besides the state behind the rationale `written`: nothing."""
        state.unguided = None

    @torch.inference_mode()
    def act(self, state: VlaState, seed: int | None, samples: int = 1) -> tuple[Trajectory, ...]:
        """Draw trajectories; the same seed draws the same ones, and none starts each from the middle of the noise."""
        noise = torch.zeros(samples, FUTURE_POINTS, 2)
        if seed is not None:
            noise.normal_(generator=torch.Generator().manual_seed(seed))
        return self.trajectories(state, noise)

    def text(self, tokens: Sequence[int]) -> str:
        """Text without end marks."""
        return self._tokenizer.decode(tokens)

    def token_text(self, token: int) -> str:
        """One token, end marks as they are."""
        return self._tokenizer.token_text(token)

    def _memory(self, state: VlaState, samples: int) -> "Memory":
        keys, values = state.cache.committed()
        return Memory(
            KeyValues(keys, values).expanded(samples),
            # Actions count on behind all that is written, read or not.
            torch.full((samples,), state.length + state.unread, device=self.device),
            torch.full((samples,), state.rope_delta, device=self.device),
        )

    def _read(self, state: VlaState, rows: "Rows", features: VisionFeatures | None = None) -> Reading:
        ids, places = torch.from_numpy(rows.ids)[None], torch.from_numpy(rows.positions)[:, None]
        device = self.device
        return self._reader.read(
            ids.to(device), places.to(device), state.cache, features, rows.layout, self._tapped_layers
        )


@dataclass(frozen=True)
class Memory:
    """What an action expert reads of a request, for S samples of its actions."""

    memory: KeyValues
    # int64 (S,): see `vla.expert.run_expert`.
    offset: Tensor
    rope_delta: Tensor


@dataclass(frozen=True)
class Rows:
    """What one pass reads."""

    # int64 (n,).
    ids: NDArray[np.int64]
    # int64 (3, n).
    positions: NDArray[np.int64]
    layout: Layout


def _positions(block: Block, start: int) -> NDArray[np.int64]:
    """Rotary positions (3, n) of a block whose anchor stands at `start`."""
    return np.tile(block.offsets + start, (3, 1))
