"""The one description of what runs: processes, names, remappings, parameters, environment, arguments.

Two front ends start it: the launch files (through `launching`) and the command line (through `processes`).
"""

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from flatrope_planner.arguments import user_path
from flatrope_planner.bringup.configuration import config_file, default_parameters
from flatrope_planner.bringup.parameter_file import read_parameter_file
from flatrope_planner.dimensions import SIMULATED_CAMERAS
from flatrope_planner.errors import InputError

PLANNER, DIAGNOSTICS, CONTROLLER, SIMULATOR = "planner", "diagnostics", "controller", "simulator"
BAG_PLAYER = "bag_player"

ParameterValue = bool | int | float | str


@dataclass(frozen=True)
class Argument:
    """Something a person may choose when starting."""

    name: str
    default: str
    meaning: str
    # Empty: anything.
    choices: tuple[str, ...] = ()
    is_path: bool = False


@dataclass(frozen=True)
class NodeProcess:
    """One node in a process of its own."""

    # Also the name of the module in flatrope_planner.nodes.
    executable: str
    name: str
    # Path of the file with its parameters, and what is set beyond it.
    parameter_file: str
    parameters: dict[str, ParameterValue] = field(default_factory=dict)
    remappings: tuple[tuple[str, str], ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    # Command that the node's own command line is handed to, such as a debugger's.
    prefix: tuple[str, ...] = ()
    # With a slash in front; "" for the root or, where a launch file has pushed a namespace, for that.
    namespace: str = ""


ROLE = Argument("role", "ego_vehicle", "role name of the ego vehicle in CARLA: the topics are /carla/<role>/...")
USE_SIM_TIME = Argument("use_sim_time", "false", "take the time from /clock", ("true", "false"))
AUTOSTART = Argument(
    "autostart",
    "",
    "whether the planner configures and activates itself or waits for a manager; empty: as its parameter file says",
    ("", "true", "false"),
)
PLANNER_FILE = Argument(
    "params_file", "", "parameter file of the planner; empty: config/planner.param.yaml", is_path=True
)
TARGET = Argument(
    "target", "", "what plans: nano, a checkpoint's folder or Hugging Face id; empty: as the parameter file says"
)
NODE_NAME = Argument(
    "node_name", PLANNER, "name of the planner's node; another one's diagnostics are <node_name>_diagnostics"
)
NAMESPACE = Argument("namespace", "", "namespace of the planner and its diagnostics, such as /car; empty: none")
CAMERA_TOPIC = Argument(
    "camera_topic",
    "/carla/{role}/{camera}/image",
    "where the pictures come from: a pattern, or each camera's topic: front_wide=/left/image_raw,front_tele=/zoom/img",
)
ODOMETRY_TOPIC = Argument("odometry_topic", "/carla/{role}/odometry", "where the ego state comes from")
COMMAND_TOPIC = Argument("command_topic", "~/input/command", "where route hints come from; ~ is the planner's node")
POINTS_TOPIC = Argument("points_topic", "~/input/points", "where point clouds come from, with corridor_check: true")
DRIVER = Argument(
    "planner", "nano", "who drives: the planner node, or the simulator's own driver", ("nano", "reference")
)
FAMILY = Argument("family", "tour", "family of scenes, several separated by commas, or tour: all trained ones")
SEED = Argument("seed", "1", "seed of the scenes")
REAL_TIME_FACTOR = Argument("real_time_factor", "1.0", "simulated seconds a second; 0: as fast as possible")
# The smallest and the largest value of each, for the simulator's own parameters too.
SEED_LIMITS, REAL_TIME_FACTOR_LIMITS = (0, 999_999), (0.0, 100.0)

BAG = Argument("bag", "out/demo/run.mcap", "the bag to play: rosbag2 folder, .mcap or .db3", is_path=True)
RATE = Argument("rate", "1.0", "recorded seconds a second")
LOOP = Argument("loop", "false", "begin again at the end", ("true", "false"))
START_DELAY = Argument("start_delay_s", "0.0", "seconds until the first message, for the nodes to load")
EVERYTHING = Argument(
    "everything",
    "false",
    "play also what the nodes of then said: plans, statuses, commands for actuators",
    ("true", "false"),
)
RATE_LIMITS, START_DELAY_LIMITS = (0.01, 100.0), (0.0, 600.0)

PLAY_ARGUMENTS = (BAG, RATE, LOOP, START_DELAY, EVERYTHING)
# Where a planner is and what it listens to, which in a demo is settled.
_WIRING = (CAMERA_TOPIC, ODOMETRY_TOPIC, COMMAND_TOPIC, POINTS_TOPIC, NODE_NAME, NAMESPACE)
PLANNER_ARGUMENTS = (ROLE, USE_SIM_TIME, AUTOSTART, TARGET, PLANNER_FILE, *_WIRING)
# A name of ROS: words of letters, digits and underscores that begin with no digit, separated by slashes.
_WORDS = r"[A-Za-z_]\w*(/[A-Za-z_]\w*)*"

REPLAY_ARGUMENTS = (*PLAY_ARGUMENTS, ROLE, TARGET, PLANNER_FILE, *_WIRING)
DEMO_ARGUMENTS = (DRIVER, FAMILY, SEED, REAL_TIME_FACTOR, ROLE, TARGET, PLANNER_FILE)


def is_topic_part(text: str) -> bool:
    """Whether ROS takes it as a part of a topic."""
    return re.fullmatch(_WORDS, text, re.ASCII) is not None


def completed(arguments: tuple[Argument, ...], chosen: Mapping[str, str]) -> dict[str, str]:
    """The value of every argument: the chosen one or else the default; `~` in a path is the home folder.

    Raises:
        InputError: naming an argument that does not exist, or a value that is not among the choices.
    """
    known = {argument.name: argument for argument in arguments}
    for name, value in chosen.items():
        if name not in known:
            msg = f"there is no argument {name!r}; there are {', '.join(known)}"
            raise InputError(msg)
        if known[name].choices and value not in known[name].choices:
            msg = f"{name} is {value!r}, expected one of {', '.join(known[name].choices)}"
            raise InputError(msg)
    values = {name: chosen.get(name, argument.default) for name, argument in known.items()}
    # An empty one is none, and not the working directory.
    paths = [name for name, value in values.items() if known[name].is_path and value]
    return values | {name: str(user_path(values[name])) for name in paths}


def planner_processes(chosen: Mapping[str, str]) -> tuple[NodeProcess, ...]:
    """The planner and its diagnostics, fed by whoever publishes the sensors.

    Raises:
        InputError: on an argument that does not fit.
    """
    return _planner_and_diagnostics(completed(PLANNER_ARGUMENTS, chosen))


def demo_processes(chosen: Mapping[str, str]) -> tuple[NodeProcess, ...]:
    """Everything: simulator, planner, diagnostics and controller.

    Raises:
        InputError: on an argument that does not fit.
    """
    values = completed(DEMO_ARGUMENTS, chosen)
    if not is_topic_part(values[ROLE.name]):
        msg = f"role is {values[ROLE.name]!r}, expected a name such as {ROLE.default}"
        raise InputError(msg)
    wiring = {argument.name: argument.default for argument in _WIRING}
    planner, diagnostics = _planner_and_diagnostics({**values, **wiring, USE_SIM_TIME.name: "true"})
    _check_simulated(planner)
    return planner, diagnostics, _controller(values), _simulator(values)


def play_processes(chosen: Mapping[str, str]) -> tuple[NodeProcess, ...]:
    """What plays a bag.

    Raises:
        InputError: on an argument that does not fit.
    """
    return (_bag_player(completed(PLAY_ARGUMENTS, chosen)),)


def replay_processes(chosen: Mapping[str, str]) -> tuple[NodeProcess, ...]:
    """A bag and who plans from it.

    Raises:
        InputError: on an argument that does not fit.
    """
    values = completed(REPLAY_ARGUMENTS, chosen)
    return (*_planner_and_diagnostics({**values, USE_SIM_TIME.name: "true"}), _bag_player(values))


def demo_environment() -> dict[str, str]:
    """What every process of a demo needs: traffic that stays on this machine.

    Humble knows only the older variable, of which later distributions disapprove in every process's output.
    """
    if os.environ.get("ROS_DISTRO") == "humble":
        return {"ROS_LOCALHOST_ONLY": "1"}
    return {"ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}


def image_environment() -> dict[str, str]:
    """What a process that sends pictures needs: shared memory that holds several of them.

    The variable's name differs between the versions of Fast DDS (2: Humble to Jazzy; 3: Kilted and later).
    """
    profile = str(config_file("fastdds.xml"))
    return {"FASTRTPS_DEFAULT_PROFILES_FILE": profile, "FASTDDS_DEFAULT_PROFILES_FILE": profile}


def _planner_and_diagnostics(values: Mapping[str, str]) -> tuple[NodeProcess, NodeProcess]:
    use_sim_time = values[USE_SIM_TIME.name] == "true"
    name, namespace = _node_name(values), _namespace(values)
    file = values[PLANNER_FILE.name] or str(config_file("planner.param.yaml"))
    planner = NodeProcess(
        executable="planner_node",
        name=name,
        namespace=namespace,
        parameter_file=file,
        parameters={"use_sim_time": use_sim_time, **_beyond_the_file(values)},
        remappings=_inputs(values, cameras_of(file, f"{namespace}/{name}")),
        environment=image_environment(),
    )
    diagnostics = NodeProcess(
        executable="diagnostics_node",
        name=DIAGNOSTICS if name == PLANNER else f"{name}_{DIAGNOSTICS}",
        namespace=namespace,
        parameter_file=str(config_file("diagnostics.param.yaml")),
        parameters={"use_sim_time": use_sim_time, "planner_name": f"{namespace}/{name}".removeprefix("/")},
        # Relative: both are in the same namespace, whoever gives it to them.
        remappings=(
            ("~/input/speculation", f"{name}/output/speculation"),
            ("~/input/status", f"{name}/output/status"),
        ),
    )
    return planner, diagnostics


def _check_simulated(planner: NodeProcess) -> None:
    """Refuse a planner that waits for pictures that the simulator does not send: simulated time would stand still.

    Raises:
        InputError: naming the cameras of both.
    """
    cameras = cameras_of(planner.parameter_file, f"{planner.namespace}/{planner.name}")
    if not set(cameras) <= set(SIMULATED_CAMERAS):
        shown = ", ".join(SIMULATED_CAMERAS)
        msg = f"{planner.parameter_file}: cameras are {', '.join(cameras)}; the simulator shows {shown} and no others"
        raise InputError(msg)


def _beyond_the_file(values: Mapping[str, str]) -> dict[str, ParameterValue]:
    """The planner's parameters that are chosen when starting, whatever its file says."""
    chosen: dict[str, ParameterValue] = {}
    if values.get(AUTOSTART.name):
        chosen[AUTOSTART.name] = values[AUTOSTART.name] == "true"
    if values[TARGET.name]:
        chosen[TARGET.name] = values[TARGET.name]
    return chosen


def _inputs(values: Mapping[str, str], cameras: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """The remappings of the planner's inputs.

    Raises:
        InputError: on a topic that ROS would not take, or that two cameras would share.
    """
    topics = {camera: topic_of(values, CAMERA_TOPIC, camera) for camera in cameras}
    for topic in topics.values():
        sharing = [other for other in topics if topics[other] == topic]
        if len(sharing) > 1:
            given = f"{CAMERA_TOPIC.name} is {values[CAMERA_TOPIC.name]!r}"
            remedy = f"expected {{camera}} in it, or each one's own: {','.join(f'{name}=TOPIC' for name in sharing)}"
            msg = f"{given}, which makes {topic} the topic of {' and '.join(sharing)}; {remedy}"
            raise InputError(msg)
    own = {argument: topic_of(values, argument) for argument in (COMMAND_TOPIC, POINTS_TOPIC)}
    return (
        ("~/input/odometry", topic_of(values, ODOMETRY_TOPIC)),
        *((f"~/input/camera/{camera}", topic) for camera, topic in topics.items()),
        *((argument.default, topic) for argument, topic in own.items() if topic != argument.default),
    )


def planner_name(values: Mapping[str, str]) -> str:
    """The full name of the planner's node, such as /car/planner.

    Raises:
        InputError: if ROS would not take it.
    """
    return f"{_namespace(values)}/{_node_name(values)}"


def _node_name(values: Mapping[str, str]) -> str:
    name = values[NODE_NAME.name]
    if not is_topic_part(name) or "/" in name:
        msg = f"{NODE_NAME.name} is {name!r}, expected one word such as {PLANNER}; {NAMESPACE.name}:= takes a namespace"
        raise InputError(msg)
    return name


def _namespace(values: Mapping[str, str]) -> str:
    """With a slash in front; "" for none."""
    words = values[NAMESPACE.name].removeprefix("/")
    if words and not is_topic_part(words):
        msg = f"{NAMESPACE.name} is {values[NAMESPACE.name]!r}, expected words such as /car"
        raise InputError(msg)
    return f"/{words}" if words else ""


def _controller(values: Mapping[str, str]) -> NodeProcess:
    reference = values[DRIVER.name] == "reference"
    trajectory = f"/{SIMULATOR}/reference/trajectory" if reference else f"/{PLANNER}/output/trajectory"
    return NodeProcess(
        executable="controller_node",
        name=CONTROLLER,
        parameter_file=str(config_file("controller.param.yaml")),
        parameters={"use_sim_time": True, "simulator_waits": True},
        remappings=(
            ("~/input/odometry", f"/carla/{values[ROLE.name]}/odometry"),
            ("~/input/trajectory", trajectory),
            ("~/output/twist", f"/carla/{values[ROLE.name]}/twist"),
        ),
    )


def _bag_player(values: Mapping[str, str]) -> NodeProcess:
    return NodeProcess(
        executable="bag_player_node",
        name=BAG_PLAYER,
        parameter_file=str(config_file("bag_player.param.yaml")),
        parameters={
            # A node finds it from wherever it runs.
            "bag": str(Path(values[BAG.name]).absolute()),
            "rate": _number(values, RATE, RATE_LIMITS),
            "loop": values[LOOP.name] == "true",
            "everything": values[EVERYTHING.name] == "true",
            "start_delay_s": _number(values, START_DELAY, START_DELAY_LIMITS),
        },
        environment=image_environment(),
    )


def _simulator(values: Mapping[str, str]) -> NodeProcess:
    return NodeProcess(
        executable="simulator_node",
        name=SIMULATOR,
        parameter_file=str(config_file("simulator.param.yaml")),
        parameters={
            "role": values[ROLE.name],
            "family": values[FAMILY.name],
            "seed": _whole_number(values, SEED, SEED_LIMITS),
            "real_time_factor": _number(values, REAL_TIME_FACTOR, REAL_TIME_FACTOR_LIMITS),
        },
        environment=image_environment(),
    )


def _number(values: Mapping[str, str], argument: Argument, limits: tuple[float, float]) -> float:
    text, (low, high) = values[argument.name], limits
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    # Nothing compares to what is no number.
    if not low <= number <= high:
        msg = f"{argument.name} is {text!r}, expected a number of [{low:.10g}, {high:.10g}]"
        raise InputError(msg)
    return number


def _whole_number(values: Mapping[str, str], argument: Argument, limits: tuple[int, int]) -> int:
    number = _number(values, argument, limits)
    if number != int(number):
        msg = f"{argument.name} is {values[argument.name]!r}, expected a whole number"
        raise InputError(msg)
    return int(number)


def topic_of(values: Mapping[str, str], argument: Argument, camera: str = "") -> str:
    """The topic that an argument speaks of.

    Raises:
        InputError: if ROS would not take it, or it names no topic for the camera.
    """
    given = values[argument.name]
    pattern = _listed(argument, given, camera) if camera and "=" in given else given
    topic = pattern.replace("{role}", values[ROLE.name]).replace("{camera}", camera)
    if not re.fullmatch(f"(~/|/)?{_WORDS}", topic, re.ASCII):
        msg = f"{argument.name} is {given!r}, which makes {topic!r}: expected a topic, of words such as /front/image"
        raise InputError(msg)
    return topic


def _listed(argument: Argument, given: str, camera: str) -> str:
    """The camera's topic in `front_wide=/left/image_raw,front_tele=/zoom/img`.

    Raises:
        InputError: if it has none.
    """
    pairs = [entry.partition("=") for entry in given.split(",")]
    topics = [topic.strip() for name, _, topic in pairs if name.strip() == camera]
    if len(topics) != 1:
        how_often = "no topic" if not topics else "several topics"
        msg = f"{argument.name} is {given!r}, which has {how_often} for the camera {camera}: expected {camera}=TOPIC"
        raise InputError(msg)
    return topics[0]


def cameras_of(parameter_file: str, node: str) -> tuple[str, ...]:
    """The planner's cameras: what its parameter file says, or the default where it says nothing.

    Raises:
        InputError: if they are no list of names.
    """
    name = "cameras"
    own = read_parameter_file(Path(parameter_file), node)
    cameras = own[name] if name in own else default_parameters("planner.param.yaml")[name]
    fits = isinstance(cameras, list) and cameras and all(isinstance(camera, str) for camera in cameras)
    if not fits or not all(is_topic_part(camera) for camera in cameras):
        msg = f"{parameter_file}: cameras is {cameras!r}, expected a list of names such as [front_wide, front_tele]"
        raise InputError(msg)
    return tuple(cameras)
