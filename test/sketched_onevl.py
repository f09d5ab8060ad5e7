"""A third target, sketched: that a target is one file and one line (docs/targets.md). It is not shipped.

In the likeness of OneVL (Xiaomi, arXiv:2604.18486): a plain Qwen3-VL whose reasoning is six latent tokens that are read
with the prompt, and whose answer is waypoints in figures, `[[1.0, 0.0], [2.5, 0.1], ...]`. Speculation covers the
figures. Which words and latent tokens its checkpoints were trained with has to be taken from its code.
"""

import re
from functools import cache, partial
from pathlib import Path

import numpy as np
import torch
from transformers import Qwen3VLForConditionalGeneration

from flatrope_planner.dimensions import CAMERA_NAMES, HISTORY_PERIOD_S
from flatrope_planner.domain import Floats, Image, Observation, ObservationSpec, Trajectory
from flatrope_planner.errors import InputError
from flatrope_planner.vla import tokenizer as tok
from flatrope_planner.vla.alpamayo.backbone import load_backbone
from flatrope_planner.vla.alpamayo.pictures import resized, target_size
from flatrope_planner.vla.autovla.trajectory import trajectory_of
from flatrope_planner.vla.checkpoint.fields import Section
from flatrope_planner.vla.checkpoint.files import CONFIG_FILE, read_json
from flatrope_planner.vla.checkpoint.tokenizer_file import read_tokenizer
from flatrope_planner.vla.checkpoint.weights import load_weights, new_network
from flatrope_planner.vla.config import MERGE, PATCH_PX
from flatrope_planner.vla.prompt import PictureSlot, PromptTokens, mrope_positions
from flatrope_planner.vla.reading import Reader
from flatrope_planner.vla.request import VlaPrompt, VlaState
from flatrope_planner.vla.target import Room, Rules, Running, VlaTarget
from flatrope_planner.vla.tokenizer import TextTokenizer
from flatrope_planner.vla.unicycle import estimate_speed
from flatrope_planner.vla.vision import VisionEncoder, VisionFeatures
from flatrope_planner.vla.vision_cache import VisionCache, capacity_for

QUESTION = "Predict the waypoints of the ego vehicle. "
# Of the assistant's turn, and read at once: latent tokens, and how an answer begins.
PREFILLED = "vvvvll<answer>[["
PIXELS = (4096, 16384)
MOST_WRITTEN = 256
FIGURES = re.compile(r"(-?\d+(?:\.\d+)?), *(-?\d+(?:\.\d+)?)\]")


class SketchedOneVl(VlaTarget):
    """Looks once with each camera, and writes where to go."""

    def __init__(
        self,
        vlm: Qwen3VLForConditionalGeneration,
        tokenizer: TextTokenizer,
        cameras: tuple[str, ...],
        tapped_layers: tuple[int, ...] = (),
    ) -> None:
        # Published vocabularies have more rows than tokens.
        unused = range(tokenizer.size, vlm.config.text_config.vocab_size)
        rules = Rules((tokenizer.special(tok.IM_END),), unused)
        reader = Reader(vlm.eval(), tokenizer.special(tok.IMAGE_PAD))
        super().__init__(reader, tokenizer, rules, Room(4096, MOST_WRITTEN), tapped_layers)
        self.token_budget = MOST_WRITTEN
        self._spec = ObservationSpec(cameras, 1, 0.1)
        self._encoder = cache(partial(VisionEncoder, vlm.model.visual))
        self.vision_cache = VisionCache(self._encode, capacity_for(self._spec))

    @classmethod
    def load(cls, folder: Path, tapped_layers: tuple[int, ...], running: Running) -> "SketchedOneVl":
        path = folder / CONFIG_FILE
        cameras = running.known_to(CAMERA_NAMES.__contains__) or ("front_wide",)
        tokenizer = TextTokenizer(read_tokenizer(folder / tok.TOKENIZER_FILE, "a OneVL"))
        whole = Section(path, read_json(path))
        config = load_backbone(folder, whole.section("text_config").whole("vocab_size"))
        precision = running.computes_with(whole.text("dtype", "bfloat16"), f"{path}: dtype")
        vlm = new_network(lambda: Qwen3VLForConditionalGeneration(config), f"{path}: no network can be made of it")
        load_weights(vlm, folder, precision, running.place())
        return cls(vlm, tokenizer, cameras, tapped_layers)

    def tapping(self, layers: tuple[int, ...]) -> "SketchedOneVl":
        assert isinstance(self.vlm, Qwen3VLForConditionalGeneration)
        return SketchedOneVl(self.vlm, self._tokenizer, self._spec.cameras, layers)

    @property
    def observation_spec(self) -> ObservationSpec:
        return self._spec

    @torch.inference_mode()
    def prepare(self, observation: Observation) -> VlaPrompt:
        self._spec.check(observation)
        frames = [observation.frames[camera][-1] for camera in self._spec.cameras]
        seen = [self.vision_cache.features(frame.image, frame.stamp_ns) for frame in frames]
        self.vision_cache.forget_unlike(observation)
        sizes = [self._size(frame.image) for frame in frames]
        slots = [PictureSlot(height // PATCH_PX // MERGE, width // PATCH_PX // MERGE) for height, width in sizes]
        shown = "".join(f"{tok.VISION_START}{tok.IMAGE_PAD * slot.tokens}{tok.VISION_END}" for slot in slots)
        way = f"The route: {observation.command}. " if observation.command else ""
        turns = f"{tok.IM_START}user\n{shown}{way}{QUESTION}{tok.IM_END}\n{tok.IM_START}assistant\n{PREFILLED}"
        ids = np.array(self._tokenizer.encode(turns))
        tokens = PromptTokens(ids, mrope_positions(ids, self.image_pad, [slot.places for slot in slots]), ())
        history = observation.ego_history
        position, rotation = torch.from_numpy(history.position_m), torch.from_numpy(history.rotation)
        speed_mps = estimate_speed(position, rotation, HISTORY_PERIOD_S)
        return VlaPrompt(tokens, VisionFeatures.joined(seen), speed_mps)

    def act(self, state: VlaState, seed: int | None, samples: int = 1) -> tuple[Trajectory, ...]:
        del seed
        return (trajectory_of(poses_of(self.text(state.written)), float(state.speed_mps)),) * samples

    def _size(self, image: Image) -> tuple[int, int]:
        height, width, _ = image.shape
        return target_size(height, width, *PIXELS)

    def _encode(self, image: Image) -> VisionFeatures:
        height, width = self._size(image)
        encoder = self._encoder((height // PATCH_PX, width // PATCH_PX)).to(self.device)
        features: VisionFeatures = encoder(torch.from_numpy(resized(image, (height, width)))[None].to(self.device))
        return features


def poses_of(answer: str) -> Floats:
    """Waypoints every half second, with the headings of the steps that lead to them."""
    points = np.array([[float(x), float(y)] for x, y in FIGURES.findall(answer)])
    if not len(points):
        msg = f"no waypoints in {answer[:40]!r}"
        raise InputError(msg)
    steps = np.diff(points, axis=0, prepend=np.zeros((1, 2)))
    return np.column_stack([points, np.arctan2(steps[:, 1], steps[:, 0])])
