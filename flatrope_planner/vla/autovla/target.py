"""AutoVLA as a target: reads three short videos and the ego's motion, and writes rationale and actions in one text."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from transformers import Qwen2_5_VLForConditionalGeneration

from flatrope_planner.domain import CameraFrame, Image, Observation, ObservationSpec, Trajectory
from flatrope_planner.errors import InputError
from flatrope_planner.vla.autovla import cameras as cam
from flatrope_planner.vla.autovla.codebook import Codebook
from flatrope_planner.vla.autovla.config import PATCH_PX, TEMPORAL_PATCH, AutoVlaConfig, check_processor
from flatrope_planner.vla.autovla.ego_motion import ego_motion
from flatrope_planner.vla.autovla.pictures import STEP_PX, patches_of, resized, target_size
from flatrope_planner.vla.autovla.prompt import VideoSlot, lay_out, motion_text, prompt_text
from flatrope_planner.vla.autovla.trajectory import trajectory_of
from flatrope_planner.vla.autovla.vocabulary import AutoVlaTokenizer, load_vocabulary
from flatrope_planner.vla.autovla.weights import load_vlm
from flatrope_planner.vla.checkpoint.files import CONFIG_FILE
from flatrope_planner.vla.reading import Reader
from flatrope_planner.vla.request import VlaPrompt, VlaState
from flatrope_planner.vla.target import Room, Rules, Running, VlaTarget
from flatrope_planner.vla.tokenizer import END_OF_TEXT
from flatrope_planner.vla.vision import VisionFeatures
from flatrope_planner.vla.vision_cache import VisionCache, capacity_for

# AutoVLA ends a text where it has 2048 tokens together with its prompt, which has about 1250 for three cameras.
MAX_PROMPT = 2048
TOKEN_BUDGET = 800
# Actions of a plan, half a second each.
STEPS = 10
# Stands where an action is missing, as in AutoVLA's own code: it hardly moves.
REST = 0


class AutoVlaTarget(VlaTarget):
    """A trained AutoVLA. Holds nothing of a request but the features of recent pictures."""

    _tokenizer: AutoVlaTokenizer

    def __init__(
        self,
        vlm: Qwen2_5_VLForConditionalGeneration,
        tokenizer: AutoVlaTokenizer,
        codebook: Codebook,
        config: AutoVlaConfig,
        seen: tuple[tuple[str, ...], tuple[int, ...]],
    ) -> None:
        """Wrap a network.

        Args:
            vlm: the network.
            tokenizer: its tokenizer.
            codebook: what its action tokens stand for.
            config: of the checkpoint.
            seen: cameras in the order of the prompt; text layers whose hidden states a drafter wants.
        """
        cameras, tapped_layers = seen
        unused = range(tokenizer.size, config.vlm.text_config.vocab_size)
        super().__init__(
            Reader(vlm.eval(), tokenizer.video_pad),
            tokenizer,
            Rules((tokenizer.im_end,), unused),
            Room(MAX_PROMPT, TOKEN_BUDGET),
            tapped_layers,
        )
        self.token_budget = TOKEN_BUDGET
        # It ends a text in AutoVLA's code, too, without completing it.
        self.eos_tokens = frozenset({tokenizer.special(END_OF_TEXT)})
        self._codebook, self._config = codebook, config
        self._spec = ObservationSpec(cameras, cam.FRAMES_PER_CAMERA, cam.FRAME_PERIOD_S)
        self.vision_cache = VisionCache(self._encode, capacity_for(self._spec) // TEMPORAL_PATCH)

    @classmethod
    def load(
        cls, checkpoint: Path, tapped_layers: tuple[int, ...] = (), running: Running | None = None
    ) -> "AutoVlaTarget":
        """Read a checkpoint: a Qwen2.5-VL as transformers saves it, and the codebook beside it.

        Args:
            checkpoint: folder of config.json, the weights, tokenizer.json and codebook.safetensors.
            tapped_layers: text layers whose hidden states a drafter wants.
            running: cameras, precision and device.

        Raises:
            SetupError: naming the file and what was expected of it.
            InputError: for cameras that AutoVLA does not know.
        """
        how = running or Running()
        cameras = cam.in_order(how.known_to(lambda name: cam.camera_index(name) is not None) or cam.CAMERAS)
        config = AutoVlaConfig.load(checkpoint)
        precision = how.computes_with(config.precision, f"{checkpoint / CONFIG_FILE}: dtype")
        check_processor(checkpoint)
        codebook = Codebook.load(checkpoint)
        tokenizer = load_vocabulary(checkpoint, len(codebook), config.vlm.text_config.vocab_size)
        vlm = load_vlm(checkpoint, config.vlm, precision, how.place())
        return cls(vlm, tokenizer, codebook, config, (cameras, tapped_layers))

    def tapping(self, layers: tuple[int, ...]) -> "AutoVlaTarget":
        """The same target, showing the hidden states behind these text layers."""
        seen = (self._spec.cameras, layers)
        return AutoVlaTarget(self.vlm, self._tokenizer, self._codebook, self._config, seen)

    @property
    def observation_spec(self) -> ObservationSpec:
        """Cameras and frames that `prepare` wants."""
        return self._spec

    @torch.inference_mode()
    def prepare(self, observation: Observation) -> VlaPrompt:
        """Encode the pairs of pictures that are new and lay out the prompt.

        Raises:
            InputError: when the pictures are not those that `observation_spec` asks for, not oldest first, or those of
                one camera not of one size.
        """
        self._spec.check(observation)
        features, slots = list[VisionFeatures](), list[VideoSlot]()
        for camera in self._spec.cameras:
            frames = observation.frames[camera]
            pictures = self._pictures(camera, frames)
            pairs = pictures.reshape(-1, TEMPORAL_PATCH, *pictures.shape[1:])
            for pair, last in zip(pairs, frames[TEMPORAL_PATCH - 1 :: TEMPORAL_PATCH], strict=True):
                features.append(self.vision_cache.features(pair, last.stamp_ns))
            rows, columns = (size // STEP_PX for size in pictures.shape[1:3])
            slots.append(VideoSlot(cam.camera_index(camera) or 0, len(pairs), rows, columns))
        self.vision_cache.forget_unlike(observation)
        motion = ego_motion(observation.ego_history)
        said, config = motion_text(motion, observation.command), self._config
        text = prompt_text(slots, said, reasons=config.reasons, numbered=config.numbered)
        tokens = lay_out(self._tokenizer, text, slots, config.seconds_stride)
        return VlaPrompt(tokens, VisionFeatures.joined(features), torch.tensor(motion.speed_mps))

    def act(self, state: VlaState, seed: int | None, samples: int = 1) -> tuple[Trajectory, ...]:
        """The trajectory that was written; there is no other one to draw.

        An action that is missing is one that hardly moves, as in AutoVLA's reinforcement learning; more are left out.
        """
        del seed
        poses = self._codebook.roll_out(self.actions(state.written))
        return (trajectory_of(poses, float(state.speed_mps)),) * samples

    def actions(self, tokens: Sequence[int]) -> list[int]:
        """The ten actions of a text, wherever in it they stand."""
        known = self._tokenizer.actions
        found = [token - known.start for token in tokens if token in known]
        return (found + [REST] * STEPS)[:STEPS]

    def text(self, tokens: Sequence[int]) -> str:
        """What stands before the first action."""
        before = next((i for i, token in enumerate(tokens) if token in self._tokenizer.actions), len(tokens))
        return self._tokenizer.decode(tokens[:before]).strip()

    def _pictures(self, camera: str, frames: Sequence[CameraFrame]) -> Image:
        """uint8 (frames, H, W, 3), resized."""
        shapes = {frame.image.shape for frame in frames}
        if len(shapes) != 1:
            msg = f"observation: pictures of {camera} of sizes {sorted(shapes)}, expected one size"
            raise InputError(msg)
        height, width, _ = shapes.pop()
        size = target_size(height, width, self._config.min_pixels, self._config.max_pixels)
        return np.stack([resized(frame.image, size) for frame in frames])

    def _encode(self, pair: Image) -> VisionFeatures:
        # One pair at a time: the tower looks at no other, and the result must not depend on which others were new.
        grid = torch.tensor([[1, *(size // PATCH_PX for size in pair.shape[1:3])]], device=self.device)
        tower = self.vlm.model.visual
        seen = tower(torch.from_numpy(patches_of(pair)).to(self.device, tower.dtype), grid_thw=grid)
        return VisionFeatures(seen.pooler_output[None], ())
