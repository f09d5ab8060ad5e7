"""AutoVLA's prompt, byte for byte, and where each of its tokens stands in Qwen2.5-VL's positions."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from flatrope_planner.vla import tokenizer as tok
from flatrope_planner.vla.autovla.cameras import VIEWS
from flatrope_planner.vla.autovla.ego_motion import EgoMotion
from flatrope_planner.vla.prompt import ROLES, PromptTokens, mrope_positions
from flatrope_planner.vla.tokenizer import TextTokenizer

VIDEO_PAD = "<|video_pad|>"
# What a drive without a route is told, in the words of AutoVLA's data sets.
NO_INSTRUCTION = "unknown"
ORDINALS = ("first", "second", "third")

# The words are AutoVLA's, every one: a model understands the prompt that it was trained with.
_ROLE = "You are an Advanced Driver Assistance and Full Self-Driving System. "
# With reasoning, and without.
SYSTEM_TEXTS = {
    True: (
        f"{_ROLE}You will receive visual observations from the ego vehicle\N{RIGHT SINGLE QUOTATION MARK}s cameras and "
        "dynamic information about the vehicle\N{RIGHT SINGLE QUOTATION MARK}s current state. "
        "Your task is to predict the optimal driving action for the next five seconds.\n\n"
        "First, carefully analyze the surrounding environment by considering traffic lights, the movements of other "
        "vehicles and pedestrians, lane markings, and any other relevant factors.\n\n"
        "If necessary, use step-by-step reasoning (Chain-of-Thought) to arrive at the best driving action. "
        "Otherwise, you may directly predict the final driving action.\n\n"
        "Structure your reasoning as follows:\n"
        "1. **Scene Analysis**: Describe the traffic situation, including relevant environmental cues such as traffic "
        "lights, lane markings, and the behaviors of surrounding vehicles or pedestrians.\n"
        "2. **Identification of Critical Objects**: Identify two to three critical road users or obstacles, specifying "
        "their relative positions to the ego vehicle.\n"
        "3. **Prediction of Critical Object Behavior**: Predict the potential movements of the identified critical "
        "objects.\n"
        "4. **Ego Vehicle Intent Reasoning**: Based on the observed environment and current vehicle state, reason "
        "about the desired intent of the ego vehicle.\n"
        "5. **Final Action Decision**: Select one lateral action and one longitudinal action:\n"
        "- **Lateral actions** (choose exactly one): [move forward, turn left, change lane to left, turn right, change "
        "lane to right]\n"
        "- **Longitudinal actions** (choose exactly one): [stop, deceleration to zero, maintain constant speed, quick "
        "deceleration, deceleration, quick acceleration, acceleration]\n\n"
        "Present the final action clearly after your reasoning steps."
    ),
    False: (
        f"{_ROLE}You will be provided with video observations from the ego vehicle\N{RIGHT SINGLE QUOTATION MARK}s "
        "surrounding cameras, along with the vehicle\N{RIGHT SINGLE QUOTATION MARK}s current dynamic states. "
        "Your task is to predict the most appropriate driving action for the next five seconds."
    ),
}
CAMERAS_TEXT = (
    "The autonomous vehicle is equipped with three cameras mounted at the front, left, and right, enabling a "
    "comprehensive perception of the surrounding environment."
)


@dataclass(frozen=True)
class VideoSlot:
    """A video's place in a prompt."""

    # Of its camera, see `cameras`.
    index: int
    # Pairs of frames, and merged tokens of each.
    pairs: int
    rows: int
    columns: int

    @property
    def tokens(self) -> int:
        """Tokens that the video takes."""
        return self.pairs * self.rows * self.columns

    def places(self, stride: int) -> NDArray[np.int64]:
        """int64 (3, tokens): time, height and width from its first token on; pairs are `stride` apart in time."""
        pair, place = np.divmod(np.arange(self.tokens), self.rows * self.columns)
        return np.stack([pair * stride, *np.divmod(place, self.columns)])


def motion_text(motion: EgoMotion, instruction: str | None) -> str:
    """What is said of the ego and its route."""
    speed, acceleration = abs(motion.speed_mps), motion.acceleration_mps2
    return (
        f"The current velocity of the vehicle is {speed:.3f} m/s, and the current acceleration is "
        f"{acceleration:.3f} m/s\N{SUPERSCRIPT TWO}. The driving instruction is: "
        f"{(instruction or NO_INSTRUCTION).lower()}. Based on this information, plan the action trajectory for the "
        "autonomous vehicle over the next five seconds."
    )


def prompt_text(videos: Sequence[VideoSlot], motion: str, *, reasons: bool, numbered: bool = False) -> str:
    """The prompt as Qwen2.5-VL's chat template lays it out, up to where the answer begins.

    Args:
        videos: in order.
        motion: see `motion_text`.
        reasons: whether it is asked to think before it acts.
        numbered: whether the template numbers the videos. AutoVLA asks for it (`add_vision_id`), but the transformers
            that it names, 4.49, does not pass that on; later ones do.
    """
    shown = "".join(
        f"The {ORDINALS[place]} video presents the {VIEWS[video.index]} view of the vehicle, comprising four "
        "sequential frames sampled at 2 Hz."
        f"{f'Video {place + 1}: ' if numbered else ''}{tok.VISION_START}{VIDEO_PAD * video.tokens}{tok.VISION_END}"
        for place, video in enumerate(videos)
    )
    turns = (SYSTEM_TEXTS[reasons], CAMERAS_TEXT + shown + motion)
    text = "".join(f"{tok.IM_START}{role}{turn}{tok.IM_END}\n" for role, turn in zip(ROLES, turns, strict=False))
    return f"{text}{tok.IM_START}{ROLES[2]}"


def lay_out(tokenizer: TextTokenizer, text: str, videos: Sequence[VideoSlot], stride: int) -> PromptTokens:
    """Tokens of a prompt's text and their positions; what is said of the ego counts as its history."""
    ids = np.array(tokenizer.encode(text))
    seen, said = (tokenizer.special(mark) for mark in (tok.VISION_END, tok.IM_END))
    first, last = (int(np.flatnonzero(ids == mark)[-1]) for mark in (seen, said))
    positions = mrope_positions(ids, tokenizer.special(VIDEO_PAD), [video.places(stride) for video in videos])
    return PromptTokens(ids, positions, tuple(range(first + 1, last)))
