"""cv_bridge: used where it reads as our own codec does, done without where it is missing, broken or wrong."""

import sys
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sensor_msgs.msg import Image as ImageMessage

from flatrope_planner.conversion import bridge as bridging
from flatrope_planner.conversion.bridge import Bridge, find_bridge
from flatrope_planner.conversion.bridge_probe import agreed
from flatrope_planner.conversion.encodings import ENCODINGS
from flatrope_planner.conversion.images import camera_frame, from_image
from flatrope_planner.domain import Image

# Reads 8-bit colours as the real one does: rows are cut into whole pixels, so a padding of another size skews them.
LIKE_THE_REAL_ONE = """
import numpy as np

ORDERS = {"rgb8": [0, 1, 2], "bgr8": [2, 1, 0], "rgba8": [0, 1, 2], "bgra8": [2, 1, 0], "mono8": [0, 0, 0]}
CHANNELS = {"rgb8": 3, "bgr8": 3, "rgba8": 4, "bgra8": 4, "mono8": 1}

class CvBridge:
    def imgmsg_to_cv2(self, message, desired_encoding="passthrough"):
        channels = CHANNELS[message.encoding]
        shape = (message.height, message.step // channels, channels)
        pixels = np.ndarray(shape, np.uint8, message.data)[:, : message.width]
        return pixels[..., ORDERS[message.encoding]] if message.encoding != "rgb8" else pixels
"""
SWAPS_COLOURS = LIKE_THE_REAL_ONE.replace("[2, 1, 0]", "[0, 1, 2]")
RAISES = """
class CvBridge:
    def imgmsg_to_cv2(self, message, desired_encoding="passthrough"):
        raise AttributeError("newbyteorder was removed from the ndarray class")
"""
CANNOT_BE_IMPORTED = "print('A module that was compiled using NumPy 1.x'); raise ImportError('_ARRAY_API not found')"
CRASHES = "import os; os.abort()"
OF_ROS_1 = "import rospkg_of_ros_1"
WITHOUT_A_CLASS = ""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Installs a cv_bridge of the given source."""

    def install(source: str) -> Bridge | None:
        (tmp_path / "cv_bridge").mkdir()
        (tmp_path / "cv_bridge" / "__init__.py").write_text(source)
        monkeypatch.syspath_prepend(str(tmp_path))
        find_bridge.cache_clear()
        return find_bridge()

    yield install
    sys.modules.pop("cv_bridge", None)
    find_bridge.cache_clear()


def message(encoding: str, padding: int = 0, size_px: tuple[int, int] = (4, 6)) -> ImageMessage:
    layout = ENCODINGS[encoding]
    height, width = size_px
    step = layout.least_step(width) + padding
    noise = np.random.default_rng(5).integers(0, 256, layout.data_bytes(height, step), np.uint8)
    data = array("B", noise.tobytes())
    return ImageMessage(height=height, width=width, encoding=encoding, step=step, data=data)


def test_where_it_reads_rightly_it_is_used(installed: Any) -> None:
    bridge = installed(LIKE_THE_REAL_ONE)
    tight = {(encoding, False) for encoding in ("rgb8", "bgr8", "rgba8", "bgra8", "mono8")}
    assert bridge.cases == tight | {("mono8", True)}
    assert bridge.to_rgb(message("bgr8"), padded=False) is not None
    assert bridge.to_rgb(message("bgr8", padding=1), padded=True) is None


def test_pictures_are_the_same_with_and_without_it(installed: Any) -> None:
    bridge = installed(LIKE_THE_REAL_ONE)
    for source in (message(encoding, padding) for encoding in ENCODINGS for padding in (0, 1)):
        np.testing.assert_array_equal(camera_frame(source, bridge).image, from_image(source), source.encoding)


def test_its_pictures_do_not_change_with_the_message(installed: Any) -> None:
    source = message("rgb8")
    picture = from_image(source, installed(LIKE_THE_REAL_ONE))
    before = picture.copy()
    source.data[0] ^= 255
    np.testing.assert_array_equal(picture, before)


def test_swapped_colours_are_noticed(installed: Any) -> None:
    bridge = installed(SWAPS_COLOURS)
    assert bridge.cases == {("rgb8", False), ("rgba8", False), ("mono8", False), ("mono8", True)}


@pytest.mark.parametrize("source", [RAISES, CANNOT_BE_IMPORTED, CRASHES, OF_ROS_1, WITHOUT_A_CLASS])
def test_one_that_does_not_work_is_none(installed: Any, source: str) -> None:
    assert installed(source) is None


def test_where_none_is_installed_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bridging, "find_spec", lambda _: None)
    find_bridge.cache_clear()
    assert find_bridge() is None
    find_bridge.cache_clear()


class Changing:
    """Reads well until it does not."""

    answer: Any = None

    def imgmsg_to_cv2(self, message: ImageMessage, desired_encoding: str) -> Image:
        if isinstance(self.answer, Exception):
            raise self.answer
        return np.asarray(self.answer)


@pytest.mark.parametrize(
    "answer", [RuntimeError("?"), None, np.zeros((4, 6)), np.zeros((4, 6), np.uint8), np.zeros((6, 4, 3), np.uint8)]
)
def test_an_answer_that_is_no_picture_is_not_taken(answer: Any) -> None:
    changing = Changing()
    changing.answer = answer
    source = message("bgr8")
    np.testing.assert_array_equal(from_image(source, Bridge(changing, [("bgr8", False)])), from_image(source))
    assert agreed(changing) == []
