"""Lost pictures by the gaps between their stamps: shares worked out by hand, and what is said of which pictures."""

import pytest

from flatrope_planner.bringup.configuration import config_file
from flatrope_planner.domain import seconds_to_ns
from flatrope_planner.nodes.input_records import InputRecord, InputRecords
from flatrope_planner.nodes.inputs import InputState
from flatrope_planner.nodes.monitoring import Level
from flatrope_planner.nodes.picture_losses import PictureLosses, SourcePauses
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


@pytest.mark.parametrize("pause_s", [5.0, 30.0])
def test_what_no_source_has_sent_is_not_lost(pause_s: float) -> None:
    pauses = SourcePauses()
    losses = PictureLosses(raw=True, fast_dds=True, pauses=pauses)
    # Pictures at 10 Hz and odometry at 20 Hz of three scenes, now the one, now the other first.
    for scene in range(3):
        for step in range(20):
            stamp_ns = seconds_to_ns(scene * (pause_s + 1.0) + step * 0.05)
            if step % 2 == 0:
                losses.take(stamp_ns, LARGE)
            pauses.take(stamp_ns)
    # From the last picture to the last odometry of a scene 0.05 s are left: two short gaps in 29.
    assert losses.share() == pytest.approx(0.0)
    assert losses.warning() == ""
    # Odometry that went on would tell that they were lost: two gaps of a pause and 0.1 s in 29.
    alone = PictureLosses(raw=True, fast_dds=True)
    for scene in range(3):
        for step in range(10):
            alone.take(seconds_to_ns(scene * (pause_s + 1.0) + step * 0.1), LARGE)
    assert alone.share() == pytest.approx(1.0 - 29 * 0.1 / (27 * 0.1 + 2 * (pause_s + 0.1)))


def test_as_long_as_nothing_else_is_sent_no_picture_is_said_to_be_lost() -> None:
    losses = {"odometry": None, "camera wide": seen([])}
    records = {name: InputRecord(f"/{name}", losses=each) for name, each in losses.items()}
    heard = dict.fromkeys(records, DRIVER)
    told = InputRecords(1.0, records).report(10.0, heard, InputState()).message
    silent = "nothing has come on /{}, though /driver publishes there"
    assert told == f"{silent.format('odometry')}; {silent.format('camera wide')}"
    # Odometry that nobody publishes tells nothing.
    told = InputRecords(1.0, records).report(10.0, {**heard, "odometry": Publishers()}, InputState()).message
    assert "perhaps as they do not fit" in told
    # Nor does odometry that has just begun: pictures may follow.
    for arrived_s, blamed in ((9.2, False), (9.7, False), (10.2, True)):
        records["odometry"].take(arrived_s, lambda: None)
        told = InputRecords(1.0, records).report(arrived_s, heard, InputState()).message
        assert ("perhaps as they do not fit" in told) is blamed
    # All has stopped, after a few pictures.
    records["camera wide"].losses = seen([0, 1, 2])
    stale = InputState(missing="old", stale="camera wide is 3.20 s old")
    for now_s, likely in ((10.3, True), (12.0, False)):
        report = InputRecords(1.0, records).report(now_s, heard, stale)
        assert ("likely as pictures of 4.3 MB" in report.message) is likely


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
