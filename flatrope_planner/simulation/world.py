"""The running world: steps traffic and ego together, judges the drive, and says what can be seen."""

from dataclasses import dataclass

import numpy as np

from flatrope_planner.domain import DriveCommand
from flatrope_planner.simulation import ego as ego_body
from flatrope_planner.simulation.agents import EgoProxy
from flatrope_planner.simulation.ego import EgoState
from flatrope_planner.simulation.families import build_scene
from flatrope_planner.simulation.scene import TRAINED_FAMILIES, UNSEEN_FAMILIES, Family, Scene, Split, StoryTime
from flatrope_planner.simulation.view import LightColor, SceneView
from flatrope_planner.simulation.visible import VisibleScene

__all__ = [
    "STEP_S",
    "TRAINED_FAMILIES",
    "UNSEEN_FAMILIES",
    "DriveCommand",
    "EgoState",
    "Family",
    "Outcome",
    "Split",
    "World",
]

STEP_S = 0.05
# A stop sign is obeyed by standing this long with the front bumper this close to the line.
STOP_ZONE_M = 6.0
STOP_HOLD_S = 1.5
STANDING_MPS = 0.25
PEDESTRIAN_RADIUS_M = 0.35
CONE_RADIUS_M = 0.2


@dataclass(frozen=True)
class Outcome:
    """How the drive stands: `done` ends it, `failures` say what went wrong."""

    done: bool
    failures: tuple[str, ...]

    @property
    def success(self) -> bool:
        """Reached the end without a fault."""
        return self.done and not self.failures


class World:
    """One episode of a scene. Deterministic in (family, seed, split) and the commands given."""

    def __init__(self, family: Family, seed: int, split: Split = Split.VAL) -> None:
        """Build the scene and put the ego on its lane at s = 0."""
        self.family, self.seed, self.split = family, seed, split
        self.scene: Scene = build_scene(family, seed, split)
        start = self.scene.start
        x, y, yaw = self.scene.layout.line.at(0.0, start.d_m)
        self.ego = EgoState(x, y, yaw + start.yaw_rad, start.speed_mps)
        self.steps = 0
        self.s_m, self.d_m = 0.0, start.d_m
        # Longest time an episode may take: a crawl along the route plus the longest wait.
        self.max_time_s = 25.0 + self.scene.goal_s_m / 6.0
        self._failures: list[str] = []
        self._proxy = EgoProxy(self.scene.road, [0.0, start.d_m], start.yaw_rad, start.speed_mps)
        self._proxy.check_collisions = False
        self._proxy.LENGTH, self._proxy.WIDTH = ego_body.LENGTH_M, ego_body.WIDTH_M
        self.scene.road.vehicles.insert(0, self._proxy)
        self._visible = VisibleScene(self.scene)
        self._locate_ego()

    @property
    def time_s(self) -> float:
        """Scene time."""
        return self.steps * STEP_S

    @property
    def front_s_m(self) -> float:
        """Arc length of the front bumper."""
        return self.s_m + ego_body.REAR_AXLE_TO_FRONT_M

    @property
    def outcome(self) -> Outcome:
        """The verdict so far."""
        return Outcome(bool(self._failures) or self.s_m >= self.scene.goal_s_m, tuple(self._failures))

    def place_ego(self, state: EgoState) -> None:
        """Put the ego elsewhere: how perturbed states come about."""
        self.ego = state
        self._locate_ego()

    def step(self, command: DriveCommand) -> None:
        """Move everything on by STEP_S."""
        front_before = self.front_s_m
        now = StoryTime(self.time_s, self.front_s_m, self.ego.speed_mps)
        for script in self.scene.scripts:
            script(now)
        self.scene.road.act()
        self.scene.road.step(STEP_S)
        for pedestrian in self.scene.pedestrians:
            pedestrian.step(STEP_S)
        self.ego = ego_body.advance(self.ego, command, STEP_S)
        self.steps += 1
        self._locate_ego()
        self._watch_stop_signs()
        self._judge(front_before)

    def coasting(self) -> DriveCommand:
        """How the ego drives before anyone takes the wheel: along its lane at the speed it started with."""
        ahead = max(5.0, self.ego.speed_mps)
        x, y, _ = self.scene.layout.line.at(self.s_m + ahead)
        dx, dy = x - self.ego.x_m, y - self.ego.y_m
        left = -np.sin(self.ego.yaw_rad) * dx + np.cos(self.ego.yaw_rad) * dy
        bend = 2.0 * float(left) / (dx * dx + dy * dy)
        return DriveCommand(self.scene.start.speed_mps, bend * self.ego.speed_mps)

    def view(self) -> SceneView:
        """What cameras could see now."""
        return self._visible.at(self.time_s, self.steps)

    def _locate_ego(self) -> None:
        line = self.scene.layout.line
        self.s_m, self.d_m = line.project(self.ego.x_m, self.ego.y_m, self.s_m)
        _, _, yaw = line.at(self.s_m)
        self._proxy.heading = self.ego.yaw_rad - yaw
        self._proxy.speed = self.ego.speed_mps
        reach = ego_body.REAR_AXLE_TO_CENTER_M
        self._proxy.position = np.array(
            [self.s_m + reach * np.cos(self._proxy.heading), self.d_m + reach * np.sin(self._proxy.heading)]
        )
        self._proxy.on_state_update()

    def _watch_stop_signs(self) -> None:
        for sign in self.scene.stop_signs:
            near = 0.0 <= sign.stop_s_m - self.front_s_m <= STOP_ZONE_M
            sign.stood_s = sign.stood_s + STEP_S if near and self.ego.speed_mps < STANDING_MPS else 0.0
            sign.released |= sign.stood_s >= STOP_HOLD_S

    def _judge(self, front_before: float) -> None:
        checks = {
            "collision": self._collides(),
            "off_road": self._off_road(),
            "ran_red_light": any(
                front_before <= light.stop_s_m < self.front_s_m and light.color_at(self.time_s) is LightColor.RED
                for light in self.scene.lights
            ),
            "missed_stop": any(
                front_before <= sign.stop_s_m < self.front_s_m and not sign.released for sign in self.scene.stop_signs
            ),
            "timeout": self.time_s >= self.max_time_s and self.s_m < self.scene.goal_s_m,
        }
        self._failures += [name for name, failed in checks.items() if failed and name not in self._failures]

    def _collides(self) -> bool:
        corners = ego_body.footprint(self.ego)
        center = np.array(self.ego.ahead(ego_body.REAR_AXLE_TO_CENTER_M))
        for x, y, yaw, length, width in self._visible.obstacle_boxes():
            close = np.hypot(x - center[0], y - center[1]) < length / 2.0 + 4.0
            if close and ego_body.overlap(corners, ego_body.box((x, y), yaw, length, width)):
                return True
        return False

    def _off_road(self) -> bool:
        layout = self.scene.layout
        for x, y in ego_body.footprint(self.ego):
            _, d = layout.line.project(float(x), float(y), self.s_m)
            if not layout.right_edge_m - 0.1 <= d <= layout.left_edge_m + 0.1:
                return True
        return False
