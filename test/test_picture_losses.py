"""Lost pictures by the gaps between their stamps: shares worked out by hand, and what is said of which pictures."""

import pytest

from flatrope_planner.bringup.configuration import config_file
from flatrope_planner.domain import seconds_to_ns
from flatrope_planner.nodes.input_records import InputRecord, InputRecords
from flatrope_planner.nodes.inputs import InputState
from flatrope_planner.nodes.monitoring import Level
from flatrope_planner.nodes.picture_losses import PictureLosses
from flatrope_planner.nodes.publishers import Publishers

DRIVER = Publishers(heard=("/driver",))
LARGE, SMALL = 1600 * 900 * 3, 640 * 240 * 3
PROFILE = f"FASTRTPS_DEFAULT_PROFILES_FILE={config_file('fastdds.xml')}"
REMEDY = f"do not fit into Fast DDS's own shared memory (0.5 MB): start what sends them with {PROFILE}"


# Two in a row, then a gap of 19: of each 20 pictures 18 are lost.
PAIRS = [20 * (n // 2) + n % 2 for n in range(40)]


def seen(frames: list[int], size: int = LARGE, *, raw: bool = True, fast_dds: bool = True) -> PictureLosses:
    """What is known when of pictures every 0.1 s those with these numbers have come."""
    losses = PictureLosses(raw=raw, fast_dds=fast_dds)
    for frame in frames:
        losses.take(seconds_to_ns(100.0 + 0.1 * frame), size)
    return losses


@pytest.mark.parametrize(
    ("frames", "share"),
    [
        (list(range(40)), 0.0),
        # 31 gaps of the newest 32 pictures: 16 of 0.1 s and 15 of 1.9 s, 301 periods.
        (PAIRS, 1.0 - 31 / 301),
        # Every second picture by design has the same gap throughout: nothing tells that it is not all.
        (list(range(0, 80, 2)), 0.0),
        # 7 pictures in 9.3 s are few, but gaps of 2, 2, 10, 20, 30 and 29 periods are not those of a slow camera.
        ([0, 2, 4, 14, 34, 64, 93], 1.0 - 2 * 6 / 93),
        # Those of one are alike, and one quick picture is no period here either.
        ([0, 20, 40, 60, 61, 80, 100, 120], 0.0),
        # Nine in a row, once.
        ([*range(20), 29, *range(30, 40)], 1.0 - 30 / 39),
    ],
)
def test_the_share_that_is_lost(frames: list[int], share: float) -> None:
    assert seen(frames).share() == pytest.approx(share)


def test_one_quick_picture_is_no_period() -> None:
    losses = PictureLosses(raw=True, fast_dds=True)
    for stamp_s in (*(0.1 * n for n in range(1, 15)), 1.401, *(0.1 * n for n in range(15, 30))):
        losses.take(seconds_to_ns(stamp_s), LARGE)
    # 29 gaps in 2.8 s.
    assert losses.share() == pytest.approx(0.0)


def test_too_few_pictures_and_another_beginning_tell_nothing() -> None:
    assert seen(list(range(16))).share() is None
    assert seen(PAIRS[:6]).share() is None
    losses = seen(PAIRS)
    losses.take(seconds_to_ns(1.0), LARGE)
    assert (losses.share(), losses.warning()) == (None, "")


def test_lost_large_pictures_are_a_warning_with_cause_and_remedy() -> None:
    words = f"about 90% of the pictures are lost, by their stamps, likely as pictures of 4.3 MB {REMEDY}"
    assert seen(PAIRS).warning().startswith(words)
    record = InputRecord("/image", losses=seen(PAIRS), last_s=9.9, used_s=9.9)
    report = InputRecords(1.0, {"image": record}).report(10.0, {"image": DRIVER}, InputState())
    assert report.level is Level.WARN
    assert report.message.startswith(f"/image: {words}")


@pytest.mark.parametrize("losses", [seen(PAIRS, SMALL), seen(list(range(40)))])
def test_small_pictures_and_those_that_come_are_no_matter_of_size(losses: PictureLosses) -> None:
    assert (losses.warning(), losses.silence() if losses.share() == 0.0 else "") == ("", "")


@pytest.mark.parametrize(
    ("losses", "words"),
    [
        (seen([]), f"perhaps as they {REMEDY}"),
        (seen([], raw=False), ""),
        (seen([0, 9]), f"likely as pictures of 4.3 MB {REMEDY}"),
        (seen([0, 9], SMALL), ""),
        # It went well until it stopped.
        (seen(list(range(40))), ""),
        (seen(PAIRS, fast_dds=False), "likely as pictures of 4.3 MB are large: send them compressed"),
    ],
)
def test_a_camera_that_publishes_and_is_not_heard(losses: PictureLosses, words: str) -> None:
    assert losses.silence().startswith(words)
    assert bool(losses.silence()) is bool(words)
    told = InputRecord("/image", losses=losses).complaint(10.0, 1.0, DRIVER)
    assert told == f"nothing has come on /image, though /driver publishes there{words and f', {losses.silence()}'}"


def test_a_camera_that_is_old_as_next_to_nothing_comes_is_told_with_the_likely_cause() -> None:
    few = {
        name: InputRecord(f"/{name}", losses=seen([0, 9], size), last_s=9.0, used_s=9.0)
        for name, size in (("camera wide", LARGE), ("camera tele", SMALL))
    }
    for name, cause in (("camera wide", f"; likely as pictures of 4.3 MB {REMEDY}"), ("camera tele", "")):
        state = InputState(missing="old", stale=f"{name} is 1.20 s old")
        report = InputRecords(2.0, few).report(10.0, dict.fromkeys(few, DRIVER), state)
        assert report.level is Level.STALE
        assert report.message.startswith(f"{name} is 1.20 s old{cause}")
        assert ("Fast DDS" in report.message) is bool(cause)
