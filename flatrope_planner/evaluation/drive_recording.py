"""Records a lap for a `Drive` in the embedded simulator."""

from dataclasses import replace

import numpy as np

from flatrope_planner.evaluation.drive import PICTURE_STEPS, STEP_S, Drive
from flatrope_planner.simulation.camera import CAMERAS
from flatrope_planner.simulation.rendering import render
from flatrope_planner.simulation.rig import ego_pose
from flatrope_planner.simulation.world import Family, Split, World

# Small pictures, as many processes share the machine; the planner scales them to its own size anyway.
WIDTH_PX, HEIGHT_PX = 448, 160
SEED = 3
# The drive starts to steer when the scene starts; by then it is over.
SETTLING_STEPS = 40
# How the odometry's frame lies: the car heads about along its y axis, so that a twist in the wrong frame shows.
TURNED_RAD = np.pi / 2.0


def record_drive(lap_s: float, family: Family = Family.FREE_ROAD) -> Drive:
    """A car that keeps its lane and its speed for a lap, seen by the cameras of the package's order."""
    cameras = [replace(camera, width_px=WIDTH_PX, height_px=HEIGHT_PX) for camera in CAMERAS]
    world = World(family, SEED, Split.VAL)
    for _ in range(SETTLING_STEPS):
        world.step(world.coasting())
    start_yaw_rad = world.ego.yaw_rad
    motion, pictures = [], []
    steps = PICTURE_STEPS * round(lap_s / (PICTURE_STEPS * STEP_S))
    for step in range(steps + 1):
        ego = world.ego
        turned = complex(ego.x_m, ego.y_m) * np.exp(1j * (TURNED_RAD - start_yaw_rad))
        yaw_rad = ego.yaw_rad - start_yaw_rad + TURNED_RAD
        motion.append([turned.real, turned.imag, yaw_rad, ego.speed_mps, ego.yaw_rate_radps])
        if step % PICTURE_STEPS == 0 and step < steps:
            pictures.append(np.stack([render(world.view(), camera, ego_pose(world)) for camera in cameras]))
        world.step(world.coasting())
    return Drive(np.array(motion, dtype=np.float64), np.stack(pictures))
