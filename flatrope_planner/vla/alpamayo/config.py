"""What a checkpoint's `config.json` fixes, in the words of this package; class paths in it are read, never imported."""

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from flatrope_planner.dimensions import FUTURE_PERIOD_S, FUTURE_POINTS
from flatrope_planner.vla.checkpoint.fields import MOST_THINGS, Section
from flatrope_planner.vla.checkpoint.files import CONFIG_FILE, read_json
from flatrope_planner.vla.unicycle import FITS, Fits, Weights

# Pixels of a picture where the configuration says nothing: what NVIDIA's own inference uses.
MIN_PIXELS, MAX_PIXELS = 163_840, 196_608
# Marks of trajectories, in the order in which they are added where there are no others.
TRAJECTORY_MARKS = ("history", "future", "history_start", "future_start", "history_end", "future_end")
# The tokenizers of trajectories, and the kind that this package has.
FUTURE, HISTORY, DELTA = "traj_tokenizer_cfg", "hist_traj_tokenizer_cfg", "DeltaTrajectoryTokenizer"
DELTA_BINS = 1000
# Nothing larger is of use: tokens of a rationale, pixels of a picture.
MOST_WRITTEN, MOST_PIXELS = 8192, 2**24


class Release(Enum):
    """Which Alpamayo, by the `model_type` of its configuration."""

    R1 = "alpamayo_r1"
    V1_5 = "alpamayo1_5"


# Where the classes are that only the later release can name.
NEWER_PACKAGE = f"{Release.V1_5.value}."


@dataclass(frozen=True)
class VocabularyConfig:
    """Tokens that were added to the backbone's."""

    # `<i0>` ... of the trajectories, future ones first.
    numbers: int
    # Those of the ego history begin here.
    history_start: int
    history_bins: int
    # All tokens, and the id of `<i0>`; None where the configuration does not say.
    size: int | None
    first_number: int | None
    # Name of a trajectory mark -> its id.
    marks: dict[str, int]
    # Whether there are marks of other things; else `<|cot_start|>` and the like are written in letters.
    marks_of_text: bool


@dataclass(frozen=True)
class DeltaConfig:
    """How steps of the ego history are cut into bins."""

    minimum_m: tuple[float, ...]
    maximum_m: tuple[float, ...]
    bins: int


@dataclass(frozen=True)
class ActionConfig:
    """Scales of acceleration (m/s^2) and curvature (1/m), steps of the flow, fits of motions, and actions of a plan."""

    mean: tuple[float, float]
    std: tuple[float, float]
    flow_steps: int
    guidance: float
    fits: Fits = FITS
    points: int = FUTURE_POINTS


@dataclass(frozen=True)
class EmbeddingConfig:
    """How noisy actions are embedded."""

    layers: int
    hidden: int
    max_frequency: float
    fourier_features: int


@dataclass(frozen=True)
class AlpamayoConfig:
    """A checkpoint's configuration."""

    release: Release
    backbone: str
    precision: str
    vocabulary: VocabularyConfig
    delta: DeltaConfig
    action: ActionConfig
    embedding: EmbeddingConfig
    output_bias: bool
    # Fields in which the expert differs from the backbone's text model.
    expert: dict[str, Any]
    token_budget: int
    min_pixels: int
    max_pixels: int

    @classmethod
    def load(cls, checkpoint: Path) -> "AlpamayoConfig":
        """Read `config.json`.

        Raises:
            SetupError: naming the field that is missing, or not as this package can run it.
        """
        path = checkpoint / CONFIG_FILE
        content = read_json(path)
        whole = Section(path, content)
        releases = [release.value for release in Release]
        if content.get("model_type") not in releases:
            whole.refuse("model_type", " or ".join(releases))
        release = Release(content["model_type"])
        if release is Release.R1 and whole.section("action_space_cfg").text("_target_").startswith(NEWER_PACKAGE):
            whole.refuse("model_type", f"{Release.V1_5.value}, of whose package its classes are")
        whole.must_be("vlm_backend", "qwenvl3")
        future_bins = _future_bins(whole)
        delta = _delta(whole)
        expert = content.get("expert_cfg") or {}
        if not isinstance(expert, dict):
            whole.refuse("expert_cfg", "an object")
        min_pixels = whole.whole("min_pixels", MIN_PIXELS, MOST_PIXELS)
        max_pixels = whole.whole("max_pixels", MAX_PIXELS, MOST_PIXELS)
        if min_pixels > max_pixels:
            whole.refuse("max_pixels", f"at least min_pixels, {min_pixels}")
        return cls(
            release=release,
            backbone=whole.text("vlm_name_or_path"),
            precision=whole.text("model_dtype", "bfloat16"),
            vocabulary=_vocabulary(whole, future_bins, delta.bins),
            delta=delta,
            action=_action(whole),
            embedding=_embedding(whole),
            output_bias=whole.built_as("action_out_proj_cfg", "Linear").flag("bias", default=True),
            expert=expert,
            token_budget=whole.whole("tokens_per_future_traj", 64, MOST_WRITTEN),
            min_pixels=min_pixels,
            max_pixels=max_pixels,
        )


def _future_bins(whole: Section) -> int:
    """Bins of the future's tokenizer, which come first; none where the history has the same one, or there is none."""
    if not (whole.holds(FUTURE) and whole.holds(HISTORY)):
        return 0
    section = whole.section(FUTURE)
    return section.whole("num_bins", DELTA_BINS if section.is_built_as(DELTA) else None)


def _vocabulary(whole: Section, start: int, history_bins: int) -> VocabularyConfig:
    numbers = whole.whole("traj_vocab_size", 768)
    if start + history_bins > numbers:
        whole.refuse("traj_vocab_size", f"at least {start + history_bins}, the bins of future and history")
    marks = whole.section("traj_token_ids") if whole.holds("traj_token_ids") else None
    return VocabularyConfig(
        numbers=numbers,
        history_start=start,
        history_bins=history_bins,
        size=whole.whole("vocab_size") if whole.holds("vocab_size") else None,
        first_number=whole.whole("traj_token_start_idx") if whole.holds("traj_token_start_idx") else None,
        marks={name: marks.whole(name) for name in TRAJECTORY_MARKS} if marks else {},
        marks_of_text=whole.flag("add_special_tokens", default=False),
    )


def _delta(whole: Section) -> DeltaConfig:
    section = whole.built_as(FUTURE if whole.holds(FUTURE) and not whole.holds(HISTORY) else HISTORY, DELTA)
    section.must_be("predict_yaw", expected=False)
    minimum = section.numbers("ego_xyz_min", (-4.0, -4.0, -10.0))
    maximum = section.numbers("ego_xyz_max", (4.0, 4.0, 10.0))
    if not all(low < high for low, high in zip(minimum, maximum, strict=True)):
        section.refuse("ego_xyz_max", f"more than ego_xyz_min, {minimum}")
    return DeltaConfig(minimum, maximum, section.whole("num_bins", DELTA_BINS))


def _action(whole: Section) -> ActionConfig:
    space = whole.built_as("action_space_cfg", "UnicycleAccelCurvatureActionSpace")
    space.must_be("dt", FUTURE_PERIOD_S)
    flow = whole.built_as("diffusion_cfg", "FlowMatching")
    flow.must_be("int_method", "euler")
    return ActionConfig(
        mean=(space.number("accel_mean", 0.0), space.number("curvature_mean", 0.0)),
        std=(_scale(space, "accel_std"), _scale(space, "curvature_std")),
        fits=Fits(
            speed=_weights(space, "v", FITS.speed),
            yaw=_weights(space, "theta", FITS.yaw),
            accel=_weights(space, "a", FITS.accel),
            curvature=_weights(space, "kappa", FITS.curvature),
        ),
        points=space.whole("n_waypoints", FUTURE_POINTS, MOST_THINGS),
        flow_steps=flow.whole("num_inference_steps", 10, MOST_THINGS),
        guidance=flow.number("inference_guidance_weight", 1.0),
    )


def _scale(space: Section, name: str) -> float:
    """Zero would do nothing whatever is seen, less than zero the opposite of it."""
    scale = space.number(name, 1.0)
    if scale <= 0.0:
        space.refuse(name, "a number above zero")
    return scale


def _weights(space: Section, name: str, default: Weights) -> Weights:
    smoothness = space.number(f"{name}_lambda", default.smoothness)
    ridge = space.number(f"{name}_ridge", default.ridge)
    if smoothness < 0.0:
        space.refuse(f"{name}_lambda", "a number not below zero")
    if ridge <= 0.0:
        space.refuse(f"{name}_ridge", "a number above zero, without which a fit may have no solution")
    return Weights(smoothness, ridge)


def _embedding(whole: Section) -> EmbeddingConfig:
    section = whole.built_as("action_in_proj_cfg", "PerWaypointActionInProjV2")
    features = section.whole("num_fourier_feats", 20)
    if features % 2:
        section.refuse("num_fourier_feats", "an even number, sine and cosine")
    max_frequency = section.number("max_freq", 100.0)
    if max_frequency <= 0.0:
        section.refuse("max_freq", "a number above zero")
    return EmbeddingConfig(
        layers=section.whole("num_enc_layers", 4, MOST_THINGS),
        hidden=section.whole("hidden_size", 1024),
        max_frequency=max_frequency,
        fourier_features=features,
    )
