"""What is recorded for a replay, and that a replay finds it."""

import pytest
from stand_ins import SPEC

from flatrope_planner.bringup.recording import FULL, MINIMAL, record_processes, recorded_topics
from flatrope_planner.cli import main
from flatrope_planner.errors import InputError
from flatrope_planner.evaluation.replay.bag_source import Topic
from flatrope_planner.evaluation.replay.topics import (
    CAMERA_INFO,
    IMAGE,
    ODOMETRY,
    PLANNED,
    TEXT,
    TRANSFORMS,
    TopicWishes,
    choose_topics,
)

CAR = {"camera_topic": "/sensing/{camera}/image_raw", "odometry_topic": "/localization/kinematic_state"}
CAMERAS = [f"/sensing/{camera}/image_raw" for camera in SPEC.cameras]


def test_minimal_is_what_a_replay_cannot_do_without() -> None:
    assert recorded_topics({**CAR, "preset": MINIMAL}) == (*CAMERAS, CAR["odometry_topic"])


def test_a_replay_takes_everything_of_the_full_preset_but_copies() -> None:
    topics = recorded_topics({**CAR, "preset": FULL})
    kinds = {CAR["odometry_topic"]: ODOMETRY, "/tf_static": TRANSFORMS, "/planner/input/command": TEXT}
    kinds |= dict.fromkeys(CAMERAS, IMAGE) | {f"/sensing/{camera}/camera_info": CAMERA_INFO for camera in SPEC.cameras}
    kinds["/planner/output/trajectory"] = PLANNED
    chosen = choose_topics([Topic(name, kinds.get(name, "other"), 1) for name in topics], SPEC.cameras, TopicWishes())
    assert chosen.names == set(kinds) <= set(topics)
    copies = {f"/planner/output/{name}" for name in ("path", "rationale", "rationale_text", "speculation")}
    assert set(topics) - chosen.names == copies


def test_the_calibration_lies_beside_compressed_pictures_too() -> None:
    topics = recorded_topics({**CAR, "camera_topic": "/{camera}/image_raw/compressed"})
    assert {f"/{camera}/camera_info" for camera in SPEC.cameras} <= set(topics)


def test_the_recorder_is_told_and_rosbag2_can_be(capsys: pytest.CaptureFixture[str]) -> None:
    (recorder,) = record_processes({**CAR, "preset": MINIMAL, "file": "a.mcap", "use_sim_time": "true"})
    expected = " ".join([*CAMERAS, CAR["odometry_topic"]])
    needed = {"cameras": " ".join(CAMERAS), "odometry": CAR["odometry_topic"]}
    assert recorder.parameters == {"use_sim_time": True, "file": "a.mcap", "topics": expected, **needed}
    assert main(["record", "--topics", "preset:=minimal", *(f"{name}:={value}" for name, value in CAR.items())]) == 0
    assert capsys.readouterr().out == expected + "\n"


def test_what_a_planner_of_another_name_says_is_recorded_by_its_name() -> None:
    there = {"node_name": "pilot", "namespace": "/car", "camera_topic": "front_wide=/left/img,front_tele=/zoom/img"}
    topics = recorded_topics({**CAR, **there})
    assert topics[:2] == ("/left/img", "/zoom/img")
    assert {"/car/pilot/input/command", "/car/pilot/output/trajectory", "/left/camera_info"} <= set(topics)
    assert "/route" in recorded_topics({**CAR, **there, "command_topic": "/route"})
    assert not any(topic.startswith("/planner/") for topic in topics)


def test_topics_that_are_relative_are_refused() -> None:
    with pytest.raises(InputError, match=r"'front_wide/image' cannot be recorded: .* such as /front_wide/image"):
        recorded_topics({"camera_topic": "{camera}/image"})
