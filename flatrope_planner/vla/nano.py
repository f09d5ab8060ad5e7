"""nano as a target: reads two cameras and the ego history, writes a rationale, draws trajectories."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor
from transformers import Qwen3VLForConditionalGeneration

from flatrope_planner.dimensions import FUTURE_POINTS, HISTORY_PERIOD_S
from flatrope_planner.domain import CameraFrame, Image, Observation, ObservationSpec, Trajectory
from flatrope_planner.errors import InputError, SetupError
from flatrope_planner.speculation.borrowed import BorrowedParts
from flatrope_planner.speculation.candidates import Block
from flatrope_planner.speculation.checkpoints.files import file_in
from flatrope_planner.speculation.checkpoints.header import read_header
from flatrope_planner.speculation.fingerprint import fingerprint
from flatrope_planner.speculation.slots import PATH_ATTENTION, CacheShape, Layout, SlotCache
from flatrope_planner.speculation.target import Prefill, StepResult
from flatrope_planner.vla.cache import KeyValues
from flatrope_planner.vla.config import NanoConfig
from flatrope_planner.vla.flow import integrate
from flatrope_planner.vla.history_tokens import encode_history
from flatrope_planner.vla.model import NanoModel, Reading, parameter_shapes
from flatrope_planner.vla.pictures import resize_picture
from flatrope_planner.vla.prompt import PromptTokens, build_prompt
from flatrope_planner.vla.tokenizer import NanoTokenizer
from flatrope_planner.vla.unicycle import action_to_trajectory, estimate_speed, to_trajectory, without_reversing
from flatrope_planner.vla.vision import VisionFeatures
from flatrope_planner.vla.vision_cache import VisionCache

WEIGHTS_FILE = "model.safetensors"
# Resolved: where a build links single files, the weights lie together with the file that this one is a link to.
SHIPPED_WEIGHTS = Path(__file__).resolve().parent.parent / "weights" / "nano"

# Longest prompt: the ordinary one has 381 tokens.
MAX_PROMPT = 512
TOKEN_BUDGET = 48


@dataclass(frozen=True)
class NanoPrompt:
    """An observation as nano reads it."""

    tokens: PromptTokens
    features: VisionFeatures
    # float64 (): speed at t0 (m/s), from the ego history.
    speed_mps: Tensor

    @property
    def token_ids(self) -> Sequence[int]:
        """Tokens of the prompt."""
        ids: list[int] = self.tokens.ids.tolist()
        return ids

    @property
    def pinned(self) -> Sequence[int]:
        """The ego history."""
        return self.tokens.history

    @property
    def rope_delta(self) -> int:
        """See `speculation.target.Prompt`."""
        return self.tokens.rope_delta

    def rotary_positions(self) -> Tensor:
        """int64 (3, tokens)."""
        return torch.from_numpy(self.tokens.positions)


@dataclass(frozen=True)
class NanoState:
    """What nano has read of one request."""

    cache: SlotCache
    rope_delta: int
    speed_mps: Tensor

    @property
    def length(self) -> int:
        """Committed tokens."""
        return self.cache.length


class NanoTarget:
    """The embedded target. Holds nothing of a request but the features of recent pictures."""

    token_budget = TOKEN_BUDGET

    def __init__(self, model: NanoModel, tokenizer: NanoTokenizer, tapped_layers: tuple[int, ...] = ()) -> None:
        """Wrap a trained network, to be run at the precision of its weights.

        Args:
            model: the network.
            tokenizer: its tokenizer.
            tapped_layers: text layers whose hidden states a drafter wants.
        """
        self._model = model.eval()
        self._tokenizer = tokenizer
        self._config = model.config
        self._tapped_layers = tapped_layers
        self._cache_shape = CacheShape(
            self._config.layers, self._config.kv_heads, self._config.head_dim, next(model.parameters()).dtype
        )
        model.vlm.model.language_model.set_attn_implementation(PATH_ATTENTION)
        self.vision_cache = VisionCache(self._encode, capacity=2 * self._config.pictures)
        self.stop_token = tokenizer.future_start
        self.ending: tuple[int, ...] = (tokenizer.cot_end, tokenizer.future_start)
        self.forbidden = torch.zeros(tokenizer.size, dtype=torch.bool)
        self.forbidden[tokenizer.history_ids.start : tokenizer.history_ids.stop] = True

    @classmethod
    def load(
        cls,
        directory: Path | None = None,
        tapped_layers: tuple[int, ...] = (),
        precision: torch.dtype = torch.float32,
    ) -> "NanoTarget":
        """Read weights, configuration and tokenizer.

        Args:
            directory: where they are; None for those that ship with the package.
            tapped_layers: text layers whose hidden states a drafter wants.
            precision: to compute with.

        Raises:
            SetupError: when something is missing or belongs to another model.
        """
        folder = directory or SHIPPED_WEIGHTS
        tokenizer, config = NanoTokenizer.load(folder), NanoConfig.load(folder)
        path = file_in(folder, WEIGHTS_FILE)
        _check_sizes(path, config, tokenizer)
        model = NanoModel(config, tokenizer)
        _load_weights(model, path)
        return cls(model.to(precision), tokenizer, tapped_layers)

    def tapping(self, layers: tuple[int, ...]) -> "NanoTarget":
        """The same target, showing the hidden states behind these text layers."""
        return NanoTarget(self._model, self._tokenizer, layers)

    @property
    def observation_spec(self) -> ObservationSpec:
        """Cameras and frames that `prepare` wants."""
        return observation_spec(self._config)

    @property
    def image_pad(self) -> int:
        """The token that stands for a patch of a picture."""
        return self._tokenizer.image_pad

    @property
    def config(self) -> NanoConfig:
        """Sizes, cameras, scales."""
        return self._config

    @property
    def fingerprint(self) -> str:
        """Name of the target's weights, the action expert's left out: no draft knows them."""
        return fingerprint(self._model.vlm)

    @property
    def parts(self) -> BorrowedParts:
        """What drafts borrow."""
        return BorrowedParts(self.vlm.get_input_embeddings(), self.vlm.model.language_model.norm, self.vlm.lm_head)

    @property
    def vlm(self) -> Qwen3VLForConditionalGeneration:
        """The text and vision model itself: what transformers would run."""
        return self._model.vlm

    @property
    def parameters(self) -> int:
        """Number of weights."""
        return sum(weight.numel() for weight in self._model.parameters())

    @torch.inference_mode()
    def prepare(self, observation: Observation) -> NanoPrompt:
        """Encode the pictures that are new and lay out the prompt.

        Raises:
            InputError: when the observation is not of the shape `observation_spec` asks for.
        """
        seen = [self.vision_cache.features(resize_picture(frame.image)) for frame in self._frames(observation)]
        levels = zip(*(features.deepstack for features in seen), strict=True)
        features = VisionFeatures(
            torch.cat([features.tokens for features in seen]), tuple(torch.cat(level) for level in levels)
        )
        history = observation.ego_history
        bins = encode_history(history.position_m).tolist()
        tokens = build_prompt(self._tokenizer, self._config.pictures, bins, observation.command or "")
        position, rotation = torch.from_numpy(history.position_m), torch.from_numpy(history.rotation)
        return NanoPrompt(tokens, features, estimate_speed(position, rotation, HISTORY_PERIOD_S))

    @torch.inference_mode()
    def prefill(self, prompt: NanoPrompt, block: Block) -> tuple[NanoState, Prefill]:
        """Read a prompt; see `Target.prefill`.

        Raises:
            InputError: when the prompt is too long.
        """
        ids, positions = prompt.tokens.ids, prompt.tokens.positions
        if len(ids) > MAX_PROMPT:
            msg = f"prompt: {len(ids)} tokens, more than {MAX_PROMPT}; use a shorter command"
            raise InputError(msg)
        before = len(ids) - 1
        # Behind the prompt's last token there is room for the rationale and its end.
        cache = SlotCache(self._cache_shape, before, 1 + TOKEN_BUDGET + len(self.ending))
        state = NanoState(cache, prompt.tokens.rope_delta, prompt.speed_mps)
        rows = Rows(
            np.concatenate([ids[:-1], block.tokens]),
            np.concatenate([positions[:, :-1], _positions(block, before + state.rope_delta)], axis=1),
            cache.layout(block),
        )
        reading = self._read(state, rows, prompt.features)
        cache.keep(range(len(ids)))
        logits = self._model.logits(reading.hidden[0, before:])
        return state, Prefill(reading.tapped[:, 0, :before], StepResult(logits, reading.tapped[:, 0, before:]))

    @torch.inference_mode()
    def step(self, state: NanoState, block: Block) -> StepResult:
        """Read a block; see `Target.step`."""
        positions = _positions(block, state.length + state.rope_delta)
        reading = self._read(state, Rows(np.array(block.tokens), positions, state.cache.layout(block)))
        return StepResult(self._model.logits(reading.hidden[0]), reading.tapped[:, 0])

    @torch.inference_mode()
    def commit(self, state: NanoState, kept: Sequence[int]) -> None:
        """Keep rows of the last block."""
        state.cache.keep(kept)

    @torch.inference_mode()
    def act(self, state: NanoState, seed: int | None, samples: int = 1) -> tuple[Trajectory, ...]:
        """Draw trajectories; the same seed draws the same ones, and none starts each from the middle of the noise."""
        keys, values = state.cache.committed()
        memory = KeyValues(keys, values).expanded(samples)
        offset = torch.full((samples,), state.length)
        delta = torch.full((samples,), state.rope_delta)
        noise = torch.zeros(samples, FUTURE_POINTS, 2)
        if seed is not None:
            noise.normal_(generator=torch.Generator().manual_seed(seed))
        velocity = partial(self._model.expert, memory=memory, offset=offset, rope_delta=delta)
        scaled = integrate(velocity, noise, self._config.flow_steps).double()
        mean, std = (torch.tensor(pair).double() for pair in (self._config.action_mean, self._config.action_std))
        speed = state.speed_mps.expand(samples)
        action = without_reversing(scaled * std + mean, speed)
        motions = action_to_trajectory(action, speed.clamp(min=0.0))
        return tuple(to_trajectory(motions[i], action[i]) for i in range(samples))

    def text(self, tokens: Sequence[int]) -> str:
        """Text without end marks."""
        return self._tokenizer.decode(tokens)

    def token_text(self, token: int) -> str:
        """One token, end marks as they are."""
        return self._tokenizer.token_text(token)

    def _frames(self, observation: Observation) -> list[CameraFrame]:
        config = self._config
        wanted = dict.fromkeys(config.cameras, config.frames_per_camera)
        got = {camera: len(frames) for camera, frames in observation.frames.items()}
        if got != wanted:
            msg = f"observation: pictures {got}, expected {wanted}"
            raise InputError(msg)
        return [frame for camera in config.cameras for frame in observation.frames[camera]]

    def _encode(self, picture: Image) -> VisionFeatures:
        # One picture at a time: the result must not depend on which others were new.
        features: VisionFeatures = self._model.vision(torch.from_numpy(picture)[None])
        return features

    def _read(self, state: NanoState, rows: "Rows", features: VisionFeatures | None = None) -> Reading:
        token_ids, places = torch.from_numpy(rows.ids)[None], torch.from_numpy(rows.positions)[:, None]
        return self._model.read(token_ids, places, state.cache, features, rows.layout, self._tapped_layers)


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


def observation_spec(config: NanoConfig) -> ObservationSpec:
    """What a nano of this configuration wants to see."""
    return ObservationSpec(config.cameras, config.frames_per_camera, config.frame_period_s)


def _check_sizes(path: Path, config: NanoConfig, tokenizer: NanoTokenizer) -> None:
    """Compare the configuration with the file beside it before memory is taken for what it asks for.

    Raises:
        SetupError: when they do not fit.
    """
    stored = {name: tensor.shape for name, tensor in read_header(path, "nano").items()}
    if stored != parameter_shapes(config, tokenizer):
        raise SetupError(_misfit(path))


def _misfit(path: Path) -> str:
    return f"{path}: weights do not fit the configuration beside them"


def _load_weights(model: NanoModel, path: Path) -> None:
    """Fill a model's parameters from a file, widened to float32."""
    try:
        weights = load_file(path)
    except (OSError, SafetensorError) as err:
        msg = f"{path}: no weights of nano ({err}); train some with `flatrope train target`"
        raise SetupError(msg) from err
    wanted = {name: value.shape for name, value in model.named_parameters()}
    if wanted != {name: value.shape for name, value in weights.items()}:
        raise SetupError(_misfit(path))
    model.load_state_dict({name: value.float() for name, value in weights.items()}, strict=False)
