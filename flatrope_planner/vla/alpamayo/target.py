"""Alpamayo as a target: reads up to seven cameras and the ego history, writes a rationale, draws trajectories."""

from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path

import torch
from torch import Tensor

from flatrope_planner.domain import CameraFrame, Image, Observation, ObservationSpec, Trajectory
from flatrope_planner.errors import InputError
from flatrope_planner.speculation.candidates import Block, Candidates
from flatrope_planner.speculation.fingerprint import fingerprint
from flatrope_planner.speculation.slots import MAX_WIDTH
from flatrope_planner.vla.alpamayo import cameras as cam
from flatrope_planner.vla.alpamayo.action_space import speed_at_t0
from flatrope_planner.vla.alpamayo.backbone import check_processor, eos_tokens, expert_config, load_backbone
from flatrope_planner.vla.alpamayo.backbone_folder import find_backbone
from flatrope_planner.vla.alpamayo.config import AlpamayoConfig, Release
from flatrope_planner.vla.alpamayo.flow import guided, sample_flow
from flatrope_planner.vla.alpamayo.guidance import without_route
from flatrope_planner.vla.alpamayo.history import encode_steps
from flatrope_planner.vla.alpamayo.model import AlpamayoModel, load_model
from flatrope_planner.vla.alpamayo.pictures import resized, target_size
from flatrope_planner.vla.alpamayo.quantised import quantise
from flatrope_planner.vla.alpamayo.vocabulary import load_vocabulary
from flatrope_planner.vla.checkpoint.files import CONFIG_FILE
from flatrope_planner.vla.config import MERGE, PATCH_PX
from flatrope_planner.vla.flow_target import FlowTarget
from flatrope_planner.vla.prompt import PictureSlot, lay_out
from flatrope_planner.vla.reading import Reader
from flatrope_planner.vla.request import VlaPrompt, VlaState
from flatrope_planner.vla.target import NO_GUIDANCE, Room, Rules, Running
from flatrope_planner.vla.tokenizer import COT_END, COT_START, ROUTE_END, ROUTE_START, VlaTokenizer, history_token
from flatrope_planner.vla.unicycle import to_trajectory
from flatrope_planner.vla.vision import VisionEncoder, VisionFeatures
from flatrope_planner.vla.vision_cache import VisionCache, capacity_for

# Most tokens of a prompt beside its pictures', each with its label: text, history and route have about 200.
MAX_TEXT, MAX_LABEL = 2048, 16


class AlpamayoTarget(FlowTarget):
    """A published Alpamayo. Holds nothing of a request but the features of recent pictures."""

    _tokenizer: VlaTokenizer

    def __init__(
        self,
        model: AlpamayoModel,
        tokenizer: VlaTokenizer,
        config: AlpamayoConfig,
        spec: ObservationSpec,
        tapped_layers: tuple[int, ...] = (),
    ) -> None:
        """Wrap a network.

        Args:
            model: the network.
            tokenizer: its tokenizer.
            config: of the checkpoint.
            spec: cameras and frames, in the order of the prompt.
            tapped_layers: text layers whose hidden states a drafter wants.
        """
        first = tokenizer.special(history_token(0))
        super().__init__(
            Reader(model.vlm, tokenizer.image_pad),
            tokenizer,
            Rules((tokenizer.future_start,), range(first, first + config.vocabulary.numbers)),
            Room(_longest_prompt(config, spec), config.token_budget),
            tapped_layers,
        )
        self._model, self._config, self._spec = model.eval(), config, spec
        self.token_budget = config.token_budget
        # NVIDIA's expert acts on an unfinished text as it stands, and `generate` stops where the backbone's text would.
        self.ending, self.eos_tokens = (), eos_tokens(model.vlm)
        self.guidance = NO_GUIDANCE
        self.points = config.action.points
        self._encoder = cache(partial(VisionEncoder, model.vlm.model.visual))
        self.vision_cache = VisionCache(self._encode, capacity_for(spec))

    @classmethod
    def load(
        cls, checkpoint: Path, tapped_layers: tuple[int, ...] = (), running: Running | None = None
    ) -> "AlpamayoTarget":
        """Read a checkpoint in NVIDIA's layout, and its backbone's settings beside it.

        Args:
            checkpoint: folder of config.json and the weights.
            tapped_layers: text layers whose hidden states a drafter wants.
            running: cameras, precision and device.

        Raises:
            SetupError: naming the file and what was expected of it.
            InputError: for cameras that Alpamayo does not know.
        """
        how = running or Running()
        cameras = cam.in_order(how.cameras or cam.USUAL)
        config = AlpamayoConfig.load(checkpoint)
        reads_commands = config.release is Release.V1_5
        spec = ObservationSpec(cameras, cam.FRAMES_PER_CAMERA, cam.FRAME_PERIOD_S, reads_commands)
        precision = how.computes_with(config.precision, f"{checkpoint / CONFIG_FILE}: model_dtype")
        backbone = find_backbone(checkpoint, config.backbone)
        check_processor(backbone)
        tokenizer = load_vocabulary(checkpoint, backbone, config.release, config.vocabulary)
        vlm = load_backbone(backbone, tokenizer.size)
        expert = expert_config(checkpoint, config, vlm.text_config)
        place = torch.device("cpu") if how.quantised else how.place()
        model = load_model(checkpoint, (config, vlm, expert), precision, place)
        if how.quantised:
            model.fingerprint = fingerprint(model.vlm)
            quantise(model, str(checkpoint), how.place())
        target = cls(model, tokenizer, config, spec, tapped_layers)
        target.guidance = how.guidance
        return target

    def tapping(self, layers: tuple[int, ...]) -> "AlpamayoTarget":
        """The same target, showing the hidden states behind these text layers."""
        same = AlpamayoTarget(self._model, self._tokenizer, self._config, self._spec, layers)
        same.guidance = self.guidance
        return same

    @property
    def observation_spec(self) -> ObservationSpec:
        """Cameras and frames that `prepare` wants; it takes fewer, too."""
        return self._spec

    @property
    def fingerprint(self) -> str:
        """See `VlaTarget.fingerprint`: that of the checkpoint's weights, quantised or not."""
        return self._model.fingerprint or super().fingerprint

    @property
    def release(self) -> Release:
        """Which Alpamayo it is."""
        return self._config.release

    @property
    def model(self) -> AlpamayoModel:
        """The network."""
        return self._model

    @torch.inference_mode()
    def prepare(self, observation: Observation) -> VlaPrompt:
        """Encode the pictures that are new and lay out the prompt.

        Raises:
            InputError: when there are pictures of unknown cameras, of unequal number, or not oldest first.
        """
        pictures, slots = [], list[PictureSlot]()
        for label, frame in self._pictures(observation):
            slots.append(self._slot(frame.image, label))
            pictures.append(self.vision_cache.features(frame.image, frame.stamp_ns))
        self.vision_cache.forget_unlike(observation)
        features = VisionFeatures.joined(pictures)
        history = observation.ego_history
        position, rotation = (torch.from_numpy(each).float() for each in (history.position_m, history.rotation))
        bins = encode_steps(position, self._config.delta).tolist()
        route = (observation.command or None) if self._spec.reads_commands else None
        tokens = lay_out(self._tokenizer, slots, bins, route)
        return VlaPrompt(
            tokens, features, speed_at_t0(position, rotation, self._config.action.fits), float(position[-1, 2])
        )

    @torch.inference_mode()
    def trajectories(self, state: VlaState, noise: Tensor) -> tuple[Trajectory, ...]:
        """See `FlowTarget.trajectories`; samples share the request's one rationale and its keys and values."""
        if state.unguided is None:
            scaled = self.scaled_actions(state, noise)
        else:
            scaled = self.guided_actions(state, state.unguided, noise, self.guidance)
        space = self._model.action_space
        motions = space.motion(scaled, state.speed_mps.to(scaled).expand(len(noise)))
        actions = space.actions(scaled)
        return tuple(to_trajectory(motions[i], actions[i], state.height_m) for i in range(len(noise)))

    @torch.inference_mode()
    def scaled_actions(self, state: VlaState, noise: Tensor) -> Tensor:
        """What the flow makes of noise (samples, points, 2): actions in the scale of the action space."""
        velocity = partial(self._model.velocity, seen=self._memory(state, len(noise)))
        return sample_flow(velocity, noise.to(self.device), self._config.action.flow_steps)

    def guide(self, state: VlaState, prompt: VlaPrompt, written: Sequence[int]) -> None:
        """Read the rationale behind the prompt without its route too, where there is one and guidance is asked for."""
        if self.guidance != NO_GUIDANCE and self._tokenizer.special(ROUTE_START) in prompt.token_ids:
            state.unguided = self.without_route(prompt, written)

    @torch.inference_mode()
    def without_route(self, prompt: VlaPrompt, written: Sequence[int]) -> VlaState:
        """What the target would have read, had nobody told it the route: the same rationale behind the other prompt.

        Args:
            prompt: with a route.
            written: tokens of the rationale, end marks included.

        Raises:
            InputError: when the prompt has no route.
        """
        start, end = (self._tokenizer.special(mark) for mark in (ROUTE_START, ROUTE_END))
        plain = without_route(prompt, start, end)
        state, _ = self.prefill(plain, Block.of(plain.token_ids[-1], Candidates()))
        for first in range(0, len(written), MAX_WIDTH):
            anchor, *rest = written[first : first + MAX_WIDTH]
            self.step(state, Block.of(anchor, Candidates.chain(rest, "")))
            self.commit(state, range(1 + len(rest)))
        return state

    @torch.inference_mode()
    def guided_actions(self, state: VlaState, plain: VlaState, noise: Tensor, weight: float | None = None) -> Tensor:
        """As `scaled_actions`, guided away from what the flow does without the route.

        Args:
            state: behind the prompt with the route.
            plain: of `without_route`.
            noise: (samples, points, 2).
            weight: 1 is no guidance; None: the checkpoint's own.
        """
        with_route, without = (
            partial(self._model.velocity, seen=self._memory(each, len(noise))) for each in (state, plain)
        )
        action = self._config.action
        velocity = guided(with_route, without, action.guidance if weight is None else weight)
        return sample_flow(velocity, noise.to(self.device), action.flow_steps)

    def text(self, tokens: Sequence[int]) -> str:
        """What stands before the end mark of the rationale, other marks as they are; nothing where there is none.

        Where its start mark is written again, it begins there.
        """
        before, end, _ = self._tokenizer.decode(tokens, marks=True).partition(COT_END)
        return before.rpartition(COT_START)[2].strip() if end else ""

    def _pictures(self, observation: Observation) -> list[tuple[str, CameraFrame]]:
        """Pictures in the order of the prompt, with the text before each."""
        frames = observation.frames
        known = {cam.camera_index(name): name for name in self._spec.cameras}
        taken = {camera: len(pictures) for camera, pictures in frames.items()}
        order = cam.in_order(frames)
        if not set(map(cam.camera_index, order)) <= known.keys() or len(set(taken.values())) != 1:
            msg = f"observation: pictures {taken}, expected equally many of some of {', '.join(self._spec.cameras)}"
            raise InputError(msg)
        shown = list[tuple[str, CameraFrame]]()
        for camera in order:
            stamps = [frame.stamp_ns for frame in frames[camera]]
            if stamps != sorted(stamps):
                msg = f"observation: pictures of {camera} at {stamps} ns, expected the oldest first"
                raise InputError(msg)
            labels = cam.labels(camera, len(stamps)) if self._config.release is Release.V1_5 else [""] * len(stamps)
            shown += zip(labels, frames[camera], strict=True)
        return shown

    def _size(self, image: Image) -> tuple[int, int]:
        height, width, _ = image.shape
        return target_size(height, width, self._config.min_pixels, self._config.max_pixels)

    def _slot(self, image: Image, label: str) -> PictureSlot:
        height, width = self._size(image)
        return PictureSlot(height // PATCH_PX // MERGE, width // PATCH_PX // MERGE, label)

    def _encode(self, image: Image) -> VisionFeatures:
        # One picture at a time: the result must not depend on which others were new.
        height, width = self._size(image)
        picture = torch.from_numpy(resized(image, (height, width)))[None].to(self.device)
        encoder = self._encoder((height // PATCH_PX, width // PATCH_PX)).to(self.device)
        features: VisionFeatures = encoder(picture)
        return features


def _longest_prompt(config: AlpamayoConfig, spec: ObservationSpec) -> int:
    tokens = config.max_pixels // (PATCH_PX * MERGE) ** 2
    return len(spec.cameras) * spec.frames_per_camera * (tokens + MAX_LABEL) + MAX_TEXT
