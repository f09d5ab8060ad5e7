"""Parameter files mean for us what they mean for ROS, and what is none is one line."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from rclpy.node import Node
from ros import ros

from flatrope_planner.bringup.parameter_file import read_parameter_file
from flatrope_planner.errors import InputError
from flatrope_planner.evaluation.replay.settings import read_settings

SET = "{ros__parameters: {x: 1, y: 2}}"
OTHER = "{ros__parameters: {x: 3}}"


def as_read(path: Path, name: str, namespace: str) -> Mapping[str, object]:
    """What we read for a node; nothing where no section is for it."""
    try:
        return read_parameter_file(path, f"{namespace.rstrip('/')}/{name}")
    except InputError as err:
        assert "sets nothing for" in str(err)  # noqa: PT017 - the other outcome is no error
        return {}


@pytest.mark.parametrize("namespace", ["/", "/car"])
@pytest.mark.parametrize(
    "content",
    [
        f"/**: {SET}",
        f"/planner: {SET}",
        f"planner: {SET}",
        f"'**': {SET}",
        f"/*: {SET}",
        f"/**/planner: {SET}",
        f"/*/planner: {SET}",
        f"/car/planner: {SET}",
        f"car/planner: {SET}",
        f"car: {{planner: {SET}}}",
        f"/car: {{planner: {SET}}}",
        f"/**: {{planner: {SET}}}",
        f"/plan: {SET}",
        f"/**: {SET}\n/planner: {OTHER}",
        f"/planner: {SET}\n/**: {OTHER}",
        f"/planner: {SET}\n/diagnostics: {OTHER}",
        "/planner: {ros__parameters: {}}",
    ],
)
def test_a_file_sets_for_a_node_what_ros_takes_from_it(tmp_path: Path, content: str, namespace: str) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(content)
    with ros("--params-file", str(file)):
        node = Node("planner", namespace=namespace)
        taken = {name: each.value for name, each in node._parameter_overrides.items() if name in ("x", "y")}
        node.destroy_node()
    assert as_read(file, "planner", namespace) == taken


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "is empty, expected a parameter file with a section such as /**: ros__parameters"),
        ("# nothing\n", "is empty"),
        ("7", "is no parameter file: expected sections such as /**: ros__parameters"),
        ("a: [", "is no parameter file: line 1: "),
        ("/**:\n\tros__parameters: {}", "is no parameter file: line 2: "),
        ("/**: {x: 1}", "'x' of /** is 1, expected ros__parameters"),
        ("/**: ", "'/**' of it is empty, expected ros__parameters"),
        ("/**: {ros__parameters: }", "'ros__parameters' of /** is empty, expected parameters with their values"),
        ("/**: {ros__parameters: [1]}", "'ros__parameters' of /** is [1], expected parameters"),
        (
            f"/pilot: {SET}",
            "sets nothing for /planner: it speaks of /pilot, expected a section /**, planner or /p",
        ),
    ],
)
def test_what_is_no_parameter_file_is_one_line_in_plain_words(tmp_path: Path, content: str, words: str) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(content)
    with pytest.raises(InputError) as caught:
        read_parameter_file(file, "/planner")
    said = str(caught.value)
    assert said.startswith(f"{file} ")
    assert words in said
    assert "\n" not in said
    assert not any(word in said for word in ("NoneType", "Errno", "object"))


def test_a_file_that_is_not_there_or_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.yaml does not exist, expected a parameter file$"):
        read_parameter_file(tmp_path / "none.yaml", "/planner")
    # The second has no end.
    for path in (tmp_path, Path("/dev/zero")):
        with pytest.raises(InputError, match=f"^{path} is no file, expected a parameter file$"):
            read_parameter_file(path, "/planner")


def test_what_ros2_param_dump_writes_of_a_planner_serves_a_replay_whatever_its_namespace(tmp_path: Path) -> None:
    file = tmp_path / "dump.yaml"
    file.write_text(
        "/car/planner:\n  ros__parameters:\n    cameras:\n    - front_wide\n    period_s: 0.5\n"
        "    qos_overrides:\n      /parameter_events:\n        publisher:\n          depth: 1000\n"
        "    start_type_description_service: true\n    use_sim_time: true\n"
    )
    settings = read_settings(file)
    assert (settings.cameras, settings.period_s) == (("front_wide",), 0.5)
