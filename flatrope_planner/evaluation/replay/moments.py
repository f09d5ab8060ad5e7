"""The worst moments of a replay, with what the camera saw: few pictures are kept, however long the bag is."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np

from flatrope_planner.domain import Image
from flatrope_planner.evaluation.replay.moment_picture import drawn_into
from flatrope_planner.evaluation.report.pictures import Eye

WORST = 10
# Of moments this close together only the worst is shown: they are the same one.
WINDOW_NS = 2_000_000_000
# What makes a moment bad: ADE over the first of these horizons that the plan has.
RANKED_BY = ("3s", "2s", "1s")
WIDTH_PX, JPEG_QUALITY = 640, 80


@dataclass(frozen=True)
class SmallPicture:
    """A camera's picture at t0, small enough to keep."""

    jpeg: bytes


@dataclass(frozen=True)
class Moment:
    """A plan far from what was driven."""

    error_m: float
    horizon: str
    row: Mapping[str, Any]
    picture: SmallPicture

    @property
    def rank(self) -> tuple[int, float, int]:
        """Larger is worse; plans that are known for longer come first, equal ones in the order of time."""
        return -RANKED_BY.index(self.horizon), self.error_m, -int(self.row["t0_ns"])


class WorstMoments:
    """The worst moment of each stretch of time, and of these the worst."""

    def __init__(self) -> None:
        """None yet."""
        self._worst: dict[tuple[int, int], Moment] = {}

    def offer(self, row: Mapping[str, Any], picture: SmallPicture) -> None:
        """Keep the moment if it is among the worst."""
        ranked = ((horizon, row["errors"][horizon].get("ade_m")) for horizon in RANKED_BY)
        horizon, error_m = next(((name, ade_m) for name, ade_m in ranked if ade_m is not None), ("", None))
        if error_m is None:
            return
        moment, window = Moment(error_m, horizon, row, picture), (row["drive"], row["t0_ns"] // WINDOW_NS)
        if window not in self._worst or moment.rank > self._worst[window].rank:
            self._worst[window] = moment
        if len(self._worst) > WORST:
            del self._worst[min(self._worst, key=lambda each: self._worst[each].rank)]

    def worst_first(self) -> list[Moment]:
        """At most ten."""
        return sorted(self._worst.values(), key=lambda moment: moment.rank, reverse=True)


def small_picture(image: Image) -> SmallPicture:
    """An RGB picture (H, W, 3), made small."""
    height, width = image.shape[:2]
    if width > WIDTH_PX:
        size = WIDTH_PX, max(round(height * WIDTH_PX / width), 1)
        image = np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA))
    return SmallPicture(_jpeg(np.asarray(cv2.cvtColor(image, cv2.COLOR_RGB2BGR), dtype=np.uint8)))


def shown_moment(moment: Moment, eye: Eye | None) -> dict[str, Any]:
    """The moment as JSON; its picture has planned and driven path in it where the bag says how the camera looks."""
    jpeg = moment.picture.jpeg
    if eye is not None:
        image = np.asarray(cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR), dtype=np.uint8)
        jpeg = _jpeg(drawn_into(image, moment.row, moment.horizon, eye))
    kept = ("t0_s", "t0_ns", "drive", "rationale", "decision", "errors", "position_m", "driven_m")
    return {
        "error_m": moment.error_m,
        "horizon": moment.horizon,
        "calibrated": eye is not None,
        **{name: moment.row[name] for name in kept},
        "jpeg": base64.b64encode(jpeg).decode("ascii"),
    }


def _jpeg(bgr: Image) -> bytes:
    _, encoded = cv2.imencode(".jpg", bgr, [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])
    return encoded.tobytes()
