"""The ego's sensors without ROS: fills an ObservationBuffer from a world, as the planner node's callbacks do."""

import numpy as np

from flatrope_planner.domain import CameraFrame, seconds_to_ns
from flatrope_planner.planning.observation import ObservationBuffer, OdometrySample
from flatrope_planner.planning.pose import yaw_quaternion
from flatrope_planner.simulation.camera import CAMERAS, CameraModel
from flatrope_planner.simulation.rendering import render
from flatrope_planner.simulation.world import STEP_S, World

# Stamps begin here, not at zero, which means "no stamp" in ROS.
EPOCH_S = 1.0
BLANK_LEVEL = 128


def stamp_of(world: World) -> int:
    """The world's time as a message stamp (ns)."""
    return seconds_to_ns(EPOCH_S + world.steps * STEP_S)


class SensorRig:
    """Odometry at every step, pictures of the cameras that are wanted every `picture_steps` (grey with `blank`)."""

    def __init__(self, world: World, buffer: ObservationBuffer, picture_steps: int, *, blank: bool = False) -> None:
        """Mount the sensors on the ego of this world."""
        self._world, self._buffer = world, buffer
        self._picture_steps, self._blank = picture_steps, blank
        self._cameras = [camera for camera in CAMERAS if camera.name in buffer.spec.cameras]

    def sense(self) -> None:
        """Measure the present moment."""
        self._buffer.add_odometry(odometry_of(self._world))
        if self._world.steps % self._picture_steps == 0:
            view = self._world.view() if not self._blank else None
            for camera in self._cameras:
                image = np.full((camera.height_px, camera.width_px, 3), BLANK_LEVEL, np.uint8)
                if view is not None:
                    image = render(view, camera, ego_pose(self._world))
                self._buffer.add_image(camera.name, CameraFrame(stamp_of(self._world), image))


def ego_pose(world: World) -> tuple[float, float, float]:
    """World x, y (m) and yaw (rad) of the rear axle."""
    return world.ego.x_m, world.ego.y_m, world.ego.yaw_rad


def odometry_of(world: World) -> OdometrySample:
    """The ego's odometry now."""
    ego = world.ego
    return OdometrySample(
        stamp_of(world),
        np.array([ego.x_m, ego.y_m, 0.0]),
        yaw_quaternion(ego.yaw_rad),
        np.array([ego.speed_mps, 0.0, 0.0]),
        ego.yaw_rate_radps,
    )


def picture(world: World, camera: CameraModel) -> CameraFrame:
    """What one camera sees now."""
    return CameraFrame(stamp_of(world), render(world.view(), camera, ego_pose(world)))
