"""Turns a description into what `ros2 launch` runs."""

import shlex
from collections.abc import Callable, Mapping

from launch.actions import DeclareLaunchArgument, OpaqueFunction, Shutdown
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from flatrope_planner.bringup.configuration import PACKAGE
from flatrope_planner.bringup.description import Argument, NodeProcess
from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity

Describe = Callable[[Mapping[str, str]], tuple[NodeProcess, ...]]


def launch_description(
    arguments: tuple[Argument, ...], describe: Describe, environment: Mapping[str, str]
) -> LaunchDescription:
    """The processes that `describe` makes of the arguments, ended together as soon as one of them ends."""

    def nodes(context: LaunchContext) -> list[LaunchDescriptionEntity]:
        chosen = {argument.name: LaunchConfiguration(argument.name).perform(context) for argument in arguments}
        return [_node(process, environment) for process in describe(chosen)]

    return LaunchDescription([*(_declaration(argument) for argument in arguments), OpaqueFunction(function=nodes)])


def _declaration(argument: Argument) -> DeclareLaunchArgument:
    return DeclareLaunchArgument(
        argument.name,
        default_value=argument.default,
        description=argument.meaning,
        choices=list(argument.choices) or None,
    )


def _node(process: NodeProcess, environment: Mapping[str, str]) -> Node:
    return Node(
        package=PACKAGE,
        executable=process.executable,
        name=process.name,
        namespace=process.namespace or None,
        parameters=[process.parameter_file, process.parameters],
        remappings=list(process.remappings),
        additional_env={**environment, **process.environment},
        prefix=shlex.join(process.prefix) or None,
        output="screen",
        emulate_tty=True,
        on_exit=Shutdown(reason=f"{process.name} has ended"),
    )
