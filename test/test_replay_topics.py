"""Topics are found by type and name, and what is not there is said with what is."""

import pytest

from flatrope_planner.errors import InputError
from flatrope_planner.evaluation.replay.bag_source import Topic
from flatrope_planner.evaluation.replay.topics import (
    COMPRESSED_IMAGE,
    IMAGE,
    ODOMETRY,
    TEXT,
    TopicWishes,
    choose_topics,
)

CAMERAS = ("front_wide", "front_tele")
BASE = [
    Topic("/ego/front_wide/image", IMAGE, 10),
    Topic("/ego/front_tele/image", IMAGE, 10),
    Topic("/ego/odometry", ODOMETRY, 20),
]


def cameras(*names: str, wishes: TopicWishes | None = None, kind: str = IMAGE) -> dict[str, str]:
    topics = [BASE[2], *(Topic(name, kind, 5) for name in names)]
    return choose_topics(topics, CAMERAS, wishes or TopicWishes()).cameras


@pytest.mark.parametrize(
    ("wide", "tele"),
    [
        ("/ego/front_wide/image_raw", "/ego/front_tele/image_raw"),
        ("/sensing/camera/FrontWide/front-wide", "/sensing/camera/front-tele"),
        ("/cam_front_wide_120/image", "/cam_front_tele_30/image"),
        ("/wide/front/image_rect", "/tele/front/image_rect"),
        ("/front_wide/image/compressed", "/front_tele/image/compressed"),
    ],
)
def test_cameras_are_found_by_their_names(wide: str, tele: str) -> None:
    others = ("/rear/image_raw", "/front_wide/depth/image", "/planner/debug/overlay/front_wide")
    assert cameras(tele, *others, wide) == {"front_wide": wide, "front_tele": tele}


def test_raw_and_compressed_are_chosen_as_wished() -> None:
    topics = [*BASE, *(Topic(f"{topic.name}/compressed", COMPRESSED_IMAGE, 10) for topic in BASE[:2])]
    raw = choose_topics(topics, CAMERAS, TopicWishes()).cameras
    packed = choose_topics(topics, CAMERAS, TopicWishes(prefer_compressed=True)).cameras
    assert raw["front_wide"] == "/ego/front_wide/image"
    assert packed["front_wide"] == "/ego/front_wide/image/compressed"


def test_names_that_say_nothing_have_to_be_given() -> None:
    with pytest.raises(InputError) as caught:
        cameras("/cam0/image", "/cam1/image")
    assert str(caught.value) == (
        "no topic of camera front_wide and camera front_tele is to be found; image topics: /cam0/image, /cam1/image; "
        "name --camera front_wide=TOPIC --camera front_tele=TOPIC; "
        "a camera that was not recorded takes a target that can do without (docs/replay.md)"
    )
    wishes = TopicWishes({"front_wide": "/cam0/image", "front_tele": "/cam1/image"})
    assert cameras("/cam0/image", "/cam1/image", wishes=wishes) == dict(wishes.cameras)
    with pytest.raises(InputError, match="topic /cam0/image would serve cameras front_wide and front_tele"):
        cameras("/cam0/image", wishes=TopicWishes(dict.fromkeys(CAMERAS, "/cam0/image")))
    with pytest.raises(InputError, match="no camera 'rear'; the target looks at front_wide, front_tele"):
        cameras("/cam0/image", wishes=TopicWishes({"rear": "/cam0/image"}))


def test_a_topic_of_pictures_that_were_only_recorded_compressed_may_be_named_without_that() -> None:
    named = {"front_wide": "/x/image_raw", "front_tele": "/y/image_raw/"}
    there = ("/x/image_raw/compressed", "/y/image_raw/compressed")
    found = cameras(*there, wishes=TopicWishes(named), kind=COMPRESSED_IMAGE)
    assert found == {"front_wide": there[0], "front_tele": there[1]}
    # What is there as it was named is taken as it is.
    found = cameras("/x/image_raw", *there, wishes=TopicWishes(named))
    assert found["front_wide"] == "/x/image_raw"
    with pytest.raises(InputError) as caught:
        cameras("/x/image_raw", wishes=TopicWishes({"front_wide": "/w/image_raw"}))
    assert str(caught.value).startswith(
        "no image topic /w/image_raw with messages; no topic of camera front_tele is to be found; "
        "image topics: /x/image_raw; name --camera front_wide=TOPIC --camera front_tele=TOPIC; "
    )


def test_the_odometry_that_was_not_taken_is_named() -> None:
    others = [Topic("/wheels", ODOMETRY, 50), Topic("/gps", ODOMETRY, 9)]
    assert choose_topics([*BASE, *others], CAMERAS, TopicWishes()).other_odometry == ("/wheels", "/gps")
    chosen = choose_topics([*BASE, *others], CAMERAS, TopicWishes(odometry="/gps"))
    assert (chosen.odometry, chosen.other_odometry) == ("/gps", ("/ego/odometry", "/wheels"))
    assert choose_topics(BASE, CAMERAS, TopicWishes()).other_odometry == ()


def test_the_usual_odometry_is_taken_then_the_fastest() -> None:
    def taken(*topics: Topic) -> str:
        return choose_topics([*BASE[:2], *topics], CAMERAS, TopicWishes()).odometry

    gps, wheel = Topic("/gps/fix_odom_raw", ODOMETRY, 90), Topic("/wheels", ODOMETRY, 50)
    assert taken(gps, wheel) == "/gps/fix_odom_raw"
    assert taken(gps, wheel, Topic("/localization/kinematic_state", ODOMETRY, 20)) == "/localization/kinematic_state"


def test_a_command_is_found_where_the_planner_listens() -> None:
    texts = [Topic("/rosout_text", TEXT, 3), Topic("/planner/input/command", TEXT, 3)]
    assert choose_topics([*BASE, *texts], CAMERAS, TopicWishes()).command == "/planner/input/command"
    assert choose_topics([*BASE, texts[0]], CAMERAS, TopicWishes()).command is None
    assert choose_topics([*BASE, texts[0]], CAMERAS, TopicWishes(command="/rosout_text")).command == "/rosout_text"
    with pytest.raises(InputError, match="no std_msgs/msg/String topic /route with messages; there is: /rosout_text"):
        choose_topics([*BASE, texts[0]], CAMERAS, TopicWishes(command="/route"))


def test_a_camera_by_its_name_in_the_data_set_has_the_topic_of_its_short_one() -> None:
    named, topics = "camera_front_wide_120fov", [BASE[2], Topic("/ego/front_wide/image", IMAGE, 5)]
    assert choose_topics(topics, (named,), TopicWishes()).cameras == {named: "/ego/front_wide/image"}
