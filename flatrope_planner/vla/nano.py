"""nano as a target: reads two cameras and the ego history, writes a rationale, draws trajectories."""

from functools import partial
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from flatrope_planner.dimensions import HISTORY_PERIOD_S
from flatrope_planner.domain import Image, Observation, ObservationSpec, Trajectory
from flatrope_planner.errors import SetupError
from flatrope_planner.speculation.checkpoints.files import file_in
from flatrope_planner.speculation.checkpoints.header import read_header
from flatrope_planner.vla.config import NanoConfig
from flatrope_planner.vla.flow import integrate
from flatrope_planner.vla.flow_target import FlowTarget
from flatrope_planner.vla.history_tokens import encode_history
from flatrope_planner.vla.model import NanoModel, parameter_shapes
from flatrope_planner.vla.pictures import resize_picture
from flatrope_planner.vla.prompt import build_prompt
from flatrope_planner.vla.request import VlaPrompt, VlaState
from flatrope_planner.vla.target import Room, Rules
from flatrope_planner.vla.tokenizer import NanoTokenizer, VlaTokenizer
from flatrope_planner.vla.unicycle import action_to_trajectory, estimate_speed, to_trajectory, without_reversing
from flatrope_planner.vla.vision import VisionFeatures
from flatrope_planner.vla.vision_cache import VisionCache, capacity_for

WEIGHTS_FILE = "model.safetensors"
# Resolved: where a build links single files, the weights lie together with the file that this one is a link to.
SHIPPED_WEIGHTS = Path(__file__).resolve().parent.parent / "weights" / "nano"

# Longest prompt: the ordinary one has 381 tokens.
MAX_PROMPT = 512
TOKEN_BUDGET = 48


NanoPrompt = VlaPrompt
NanoState = VlaState


class NanoTarget(FlowTarget):
    """The embedded target. Holds nothing of a request but the features of recent pictures."""

    token_budget = TOKEN_BUDGET
    _tokenizer: VlaTokenizer

    def __init__(self, model: NanoModel, tokenizer: VlaTokenizer, tapped_layers: tuple[int, ...] = ()) -> None:
        """Wrap a trained network, to be run at the precision of its weights.

        Args:
            model: the network.
            tokenizer: its tokenizer.
            tapped_layers: text layers whose hidden states a drafter wants.
        """
        rules = Rules(tokenizer.ending, tokenizer.history_ids)
        super().__init__(model.reader, tokenizer, rules, Room(MAX_PROMPT, TOKEN_BUDGET), tapped_layers)
        self._model = model.eval()
        self._config = model.config
        self.vision_cache = VisionCache(self._encode, capacity_for(self.observation_spec))

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
        config, tokenizer = NanoConfig.load(folder), NanoTokenizer.load(folder)
        path = file_in(folder, WEIGHTS_FILE)
        _check_sizes(path, config, tokenizer)
        model = NanoModel(config, tokenizer)
        _load_weights(model, path)
        return cls(model.to(precision), tokenizer, tapped_layers)

    def at(self, precision: torch.dtype) -> "NanoTarget":
        """The same target at another precision."""
        return NanoTarget(self._model.to(precision), self._tokenizer, self._tapped_layers)

    def tapping(self, layers: tuple[int, ...]) -> "NanoTarget":
        """The same target, showing the hidden states behind these text layers."""
        return NanoTarget(self._model, self._tokenizer, layers)

    @property
    def observation_spec(self) -> ObservationSpec:
        """Cameras and frames that `prepare` wants."""
        return observation_spec(self._config)

    @property
    def config(self) -> NanoConfig:
        """Sizes, cameras, scales."""
        return self._config

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
        spec = self.observation_spec
        spec.check(observation)
        shown = [frame for camera in spec.cameras for frame in observation.frames[camera]]
        seen = [self.vision_cache.features(resize_picture(frame.image), frame.stamp_ns) for frame in shown]
        self.vision_cache.forget_unlike(observation)
        features = VisionFeatures.joined(seen)
        history = observation.ego_history
        bins = encode_history(history.position_m).tolist()
        # The command is left out: nano was taught without any, and one in its prompt makes it drive off the road.
        tokens = build_prompt(self._tokenizer, self._config.pictures, bins, "")
        position, rotation = torch.from_numpy(history.position_m), torch.from_numpy(history.rotation)
        return NanoPrompt(tokens, features, estimate_speed(position, rotation, HISTORY_PERIOD_S))

    @torch.inference_mode()
    def trajectories(self, state: NanoState, noise: Tensor) -> tuple[Trajectory, ...]:
        """See `FlowTarget.trajectories`."""
        seen = self._memory(state, len(noise))
        velocity = partial(self._model.expert, memory=seen.memory, offset=seen.offset, rope_delta=seen.rope_delta)
        scaled = integrate(velocity, noise, self._config.flow_steps).double()
        mean, std = (torch.tensor(pair).double() for pair in (self._config.action_mean, self._config.action_std))
        speed = state.speed_mps.expand(len(noise))
        action = without_reversing(scaled * std + mean, speed)
        motions = action_to_trajectory(action, speed.clamp(min=0.0))
        return tuple(to_trajectory(motions[i], action[i]) for i in range(len(noise)))

    def _encode(self, picture: Image) -> VisionFeatures:
        # One picture at a time: the result must not depend on which others were new.
        features: VisionFeatures = self._model.vision(torch.from_numpy(picture)[None])
        return features


def observation_spec(config: NanoConfig) -> ObservationSpec:
    """What a nano of this configuration wants to see."""
    return ObservationSpec(config.cameras, config.frames_per_camera, config.frame_period_s, reads_commands=False)


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
