"""What all targets share: a Qwen-VL reads pictures and the ego's motion, and writes a text. How it acts is their own.

A target with other parts is a subclass and a line in `vla.targets` (docs/targets.md).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from flatrope_planner.domain import Observation, ObservationSpec, Trajectory
from flatrope_planner.errors import InputError, SetupError, reason
from flatrope_planner.speculation.borrowed import BorrowedParts
from flatrope_planner.speculation.candidates import Block
from flatrope_planner.speculation.draft_checkpoint import TargetSizes
from flatrope_planner.speculation.draft_config import LayerShape
from flatrope_planner.speculation.fingerprint import fingerprint
from flatrope_planner.speculation.slots import PATH_ATTENTION, CacheShape, Layout, SlotCache
from flatrope_planner.speculation.target import Prefill, StepResult
from flatrope_planner.vla.reading import QwenVL, Reader, Reading
from flatrope_planner.vla.request import VlaPrompt, VlaState
from flatrope_planner.vla.tokenizer import TextTokenizer
from flatrope_planner.vla.vision import VisionFeatures

T = TypeVar("T", bound="VlaTarget")

# By their names in configurations and parameters.
PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16}
# The parameter's word for `Running.quantised`.
INT8 = "int8"
# Layers of 36.
DRAFT_DEPTHS = (24, 30, 31, 32, 34)
NO_GUIDANCE = 1.0
# Kinds that exactness has been looked at on; PyTorch knows more.
DEVICES = ("cpu", "cuda")


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
    # Whether cameras that the target does not know are refused; without, they are left out.
    refuses_unknown: bool = True

    def known_to(self, knows: Callable[[str], bool]) -> tuple[str, ...] | None:
        """The cameras to be shown to a target that knows some by their names; None: its own."""
        if self.cameras is None or self.refuses_unknown:
            return self.cameras
        return tuple(camera for camera in self.cameras if knows(camera))

    def computes_with(self, stored: str, field: str) -> torch.dtype:
        """The precision: the one asked for, or else that of the weights.

        Args:
            stored: what the configuration says the weights are.
            field: its file and name, for the complaint.

        Raises:
            SetupError: for one that is not computed with.
        """
        precision = self.precision or PRECISIONS.get(stored)
        if precision is None:
            msg = f"{field} is {stored!r}, expected {', '.join(PRECISIONS)}; or ask for one"
            raise SetupError(msg)
        return precision

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
        if device.type not in DEVICES:
            msg = f"device is {self.device!r}, expected auto, cpu or cuda"
            raise InputError(msg)
        if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
            msg = f"device is {self.device!r}, but PyTorch sees {torch.cuda.device_count()} GPUs"
            raise InputError(msg)
        return device


@dataclass(frozen=True)
class Room:
    """Most tokens that there is room for."""

    prompt: int
    # Of the rationale, end marks not counted, and of what acting reads behind it.
    rationale: int


@dataclass(frozen=True)
class Rules:
    """What a target writes."""

    # The end marks, stop token last.
    ending: tuple[int, ...]
    # Tokens that are never written: marks of prompts, and rows of the network that stand for no token.
    forbidden: Sequence[int]


class VlaTarget(ABC):
    """Holds nothing of a request. See `speculation.target.Target` for its part in decoding."""

    token_budget: int

    def __init__(
        self,
        reader: Reader,
        tokenizer: TextTokenizer,
        rules: Rules,
        room: Room,
        tapped_layers: tuple[int, ...] = (),
    ) -> None:
        """Wrap a trained Qwen-VL, to be run where its weights are and at their precision.

        Args:
            reader: the network.
            tokenizer: its tokenizer.
            rules: what is written.
            room: for prompt and rationale.
            tapped_layers: text layers whose hidden states a drafter wants.
        """
        self._reader, self._tokenizer, self._tapped_layers, self._room = reader, tokenizer, tapped_layers, room
        text, weight = reader.vlm.config.text_config, reader.vlm.lm_head.weight
        head_dim = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
        self._cache_shape = CacheShape(
            text.num_hidden_layers, text.num_key_value_heads, head_dim, weight.dtype, str(weight.device)
        )
        reader.vlm.model.language_model.set_attn_implementation(PATH_ATTENTION)
        self.ending = rules.ending
        self.stop_token = rules.ending[-1]
        self.eos_tokens = frozenset[int]()
        self.forbidden = torch.zeros(text.vocab_size, dtype=torch.bool)
        self.forbidden[torch.tensor(rules.forbidden, dtype=torch.long)] = True
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
    def act(self, state: VlaState, seed: int | None, samples: int = 1) -> tuple[Trajectory, ...]:
        """Trajectories behind a finished rationale; see `planning.planner.SeesAndActs`."""

    @property
    def vlm(self) -> QwenVL:
        """The text and vision model itself: what transformers would run."""
        return self._reader.vlm

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        device: torch.device = self.vlm.lm_head.weight.device
        return device

    @property
    def precision(self) -> torch.dtype:
        """What it computes in."""
        return self._cache_shape.dtype

    @property
    def image_pad(self) -> int:
        """The token that stands for a patch of a picture."""
        return self._reader.image_pad

    @property
    def sizes(self) -> TargetSizes:
        """What a draft must agree with."""
        text = self.vlm.config.text_config
        return TargetSizes(text.hidden_size, text.vocab_size, text.num_hidden_layers)

    @property
    def layer_shape(self) -> LayerShape:
        """Of a text layer."""
        text, cached = self.vlm.config.text_config, self._cache_shape
        return LayerShape(text.num_attention_heads, cached.kv_heads, cached.head_dim, text.intermediate_size)

    @property
    def mrope_section(self) -> tuple[int, ...] | None:
        """Rotary pairs of time, height and width; None where its configuration leaves them to transformers."""
        section = self.vlm.config.text_config.rope_parameters.get("mrope_section")
        return None if section is None else tuple(section)

    @property
    def rope_theta(self) -> float:
        """Base of the rotary frequencies."""
        return float(self.vlm.config.text_config.rope_parameters["rope_theta"])

    @property
    def fingerprint(self) -> str:
        """Name of the target's weights, those of an action head left out: no draft knows them."""
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
        state.block = tuple(block.tokens)
        reading = self.behind(state, block)
        return StepResult(self.vlm.lm_head(reading.hidden[0]), reading.tapped[:, 0])

    @torch.inference_mode()
    def behind(self, state: VlaState, block: Block) -> Reading:
        """What the text model makes of tokens behind the committed ones; nothing is kept.

        Action heads that read the states of tokens of their own find them here.

        Raises:
            InputError: when there is no room left for them; see `Room`.
        """
        positions = _positions(block, state.length + state.rope_delta)
        return self._read(state, Rows(np.array(block.tokens), positions, state.cache.layout(block)))

    @torch.inference_mode()
    def commit(self, state: VlaState, kept: Sequence[int]) -> None:
        """Keep rows of the last block."""
        state.keep(kept)

    def guide(self, state: VlaState, prompt: VlaPrompt, written: Sequence[int]) -> None:
        """Read what acting needs besides the state behind the rationale `written`: nothing."""
        state.unguided = None

    def text(self, tokens: Sequence[int]) -> str:
        """Text without end marks."""
        return self._tokenizer.decode(tokens)

    def token_text(self, token: int) -> str:
        """One token, end marks as they are."""
        return self._tokenizer.token_text(token)

    def _read(self, state: VlaState, rows: "Rows", features: VisionFeatures | None = None) -> Reading:
        ids, places = torch.from_numpy(rows.ids)[None], torch.from_numpy(rows.positions)[:, None]
        device = self.device
        return self._reader.read(
            ids.to(device), places.to(device), state.cache, features, rows.layout, self._tapped_layers
        )


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
