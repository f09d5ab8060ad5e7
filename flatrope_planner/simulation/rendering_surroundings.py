"""Sky, hills, buildings and trees: a background that tells nothing."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from flatrope_planner.domain import Floats, Image
from flatrope_planner.simulation.camera import CameraModel
from flatrope_planner.simulation.canvas import SUN, Canvas, Color, Point, rgb
from flatrope_planner.simulation.mesh import Mesh, MeshBuilder, Palette, paint_mesh
from flatrope_planner.simulation.projection import NEAR_M
from flatrope_planner.simulation.view import Appearance, BuildingView, TreeView

# The sky reaches its full colour this high up, whatever the lens.
ZENITH_DEG = 25.0
STOREY_M, WINDOW_M, WINDOW_EVERY_M = 3.2, 1.3, 2.6
# Houses lower than this have a gable roof.
GABLE_BELOW_M = 8.5
# A storey this small (px) has a band for windows.
DETAIL_PX = 9.0
WALL, WINDOW, ROOF, PLINTH, DOOR = range(5)
HILL_STEP_PX = 16
# Ridges along the horizon: mean height and swing (degrees), waves round the compass, distance (m), colour.
RIDGES: tuple[tuple[float, float, tuple[int, ...], float, Color], ...] = (
    (1.0, 0.28, (5, 11, 23, 41), 900.0, (98, 122, 120)),
    (0.42, 0.07, (19, 47, 101, 197, 331), 420.0, (72, 102, 70)),
)
TRUNK: Color = (92, 70, 52)


def backdrop(look: Appearance, camera: CameraModel) -> Image:
    """Sky over a plain of ground: uint8 (H, W, 3)."""
    return _sky_and_ground(look, camera).copy()


@lru_cache(maxsize=16)
def _sky_and_ground(look: Appearance, camera: CameraModel) -> Image:
    horizon = camera.height_px / 2.0 + camera.focal_px * np.tan(np.radians(camera.pitch_deg))
    rows = np.arange(camera.height_px) + 0.5
    top, low, ground = (np.array(rgb(color)) for color in (look.sky_top, look.sky_horizon, look.ground))
    up = np.clip((horizon - rows) / (camera.focal_px * np.tan(np.radians(ZENITH_DEG))), 0.0, 1.0)[:, None]
    depth = camera.z_m * camera.focal_px / np.maximum(rows - horizon, 1e-3)[:, None]
    # Turf looks lighter near by, where one sees between the blades.
    land = ground * (0.9 + 0.14 * np.exp(-depth / 12.0))
    column = np.where((rows < horizon)[:, None], low + (top - low) * up, land) * look.brightness
    tones = np.clip(column, 0, 255).astype(np.uint8)
    return np.broadcast_to(tones[:, None, :], (camera.height_px, camera.width_px, 3)).copy()


def paint_ridges(canvas: Canvas) -> None:
    """Hills and a line of trees at the horizon, fixed in the world."""
    camera = canvas.eye.camera
    u = np.arange(0, camera.width_px + HILL_STEP_PX, HILL_STEP_PX)
    right = (u - camera.width_px / 2.0) / camera.focal_px
    azimuth = canvas.eye.yaw_rad - np.arctan(right)
    # Pixels per radian of elevation at each column.
    scale = camera.focal_px * np.hypot(1.0, right)
    horizon = canvas.eye.horizon_px
    for mean_deg, swing_deg, waves, distance_m, color in RIDGES:
        swing = sum(np.sin(n * azimuth + n * n) for n in waves)
        height = scale * np.radians(np.maximum(mean_deg + swing_deg * swing, 0.05))
        outline = np.concatenate(
            [np.stack([u, horizon - height], axis=1), [[u[-1], horizon + 1.0], [u[0], horizon + 1.0]]]
        )
        canvas.fill_pixels(outline, canvas.tint(color, distance_m))


def paint_building(canvas: Canvas, building: BuildingView, depth_m: float) -> None:
    """A block with rows of windows, or a house with a gable roof."""
    detailed = STOREY_M * canvas.eye.scale_at(max(depth_m, NEAR_M)) > DETAIL_PX
    mesh = _building_mesh(building.length_m, building.width_m, building.height_m, detailed)
    wall = np.array(rgb(building.color), dtype=float)
    colors = np.array([wall, (66, 80, 96), wall * 0.55 + (40.0, 12.0, 8.0), wall * 0.7, (70, 58, 50)])
    paint_mesh(canvas, mesh, (*building.center, building.yaw_rad), Palette(colors, _NOTHING_SHINES), depth_m)


_NOTHING_SHINES: NDArray[np.bool_] = np.zeros(5, dtype=bool)


@lru_cache(maxsize=512)
def _building_mesh(length: float, width: float, height: float, detailed: bool) -> Mesh:
    mesh = MeshBuilder()
    half = np.array([length, width]) / 2.0
    gable = height < GABLE_BELOW_M
    eaves = height * 0.68 if gable else height
    # Corners counter-clockwise from above; each wall runs from one to the next.
    corners = np.array([[1, -1], [1, 1], [-1, 1], [-1, -1]]) * half
    for number in range(4):
        wall = corners[number], corners[(number + 1) % 4]
        mesh.add(WALL, _panel(*wall, (0.0, 1.0), (0.0, eaves)))
        if detailed:
            mesh.add(PLINTH, _panel(*wall, (0.0, 1.0), (0.0, 0.5)))
        if not gable:
            mesh.add(ROOF, _panel(*wall, (0.0, 1.0), (height - 0.45, height)))
        _add_windows(mesh, wall, eaves, detailed)
    if gable:
        _add_roof(mesh, half, (eaves, height))
    return mesh.build()


def _panel(start: Floats, end: Floats, along: tuple[float, float], up: tuple[float, float]) -> Floats:
    """Part of a wall: shares of its length, heights (m)."""
    a, b = start + (end - start) * along[0], start + (end - start) * along[1]
    return np.array([[*a, up[0]], [*b, up[0]], [*b, up[1]], [*a, up[1]]])


def _add_windows(mesh: MeshBuilder, wall: tuple[Floats, Floats], eaves: float, detailed: bool) -> None:
    length = float(np.linalg.norm(wall[1] - wall[0]))
    count = max(1, int((length - 1.0) / WINDOW_EVERY_M)) if detailed else 1
    half = (WINDOW_M if detailed else length * 0.8) / 2.0 / length
    panes, doors = [], []
    for storey in range(max(1, int((eaves - 0.2) / STOREY_M))):
        for place in (np.arange(count) + 0.5) / count:
            foot = storey * STOREY_M
            if detailed and storey == 0 and place == (count // 2 + 0.5) / count:
                doors.append(_panel(*wall, (place - half, place + half), (0.1, 2.3)))
                continue
            panes.append(_panel(*wall, (place - half, place + half), (foot + 1.0, min(foot + 2.5, eaves - 0.3))))
    for material, panels in ((WINDOW, panes), (DOOR, doors)):
        if panels:
            mesh.add(material, np.array(panels))


def _add_roof(mesh: MeshBuilder, half: Floats, up: tuple[float, float]) -> None:
    """A ridge along the house, gables at its ends, eaves over its sides."""
    eaves, ridge = up
    x, y = float(half[0]), float(half[1])
    over = 0.4
    for end in (1.0, -1.0):
        mesh.add(WALL, np.array([[end * x, -end * y, eaves], [end * x, end * y, eaves], [end * x, 0.0, ridge]]))
        foot, out = end * (y + over), (x + over) * end
        drop = eaves - over * (ridge - eaves) / y
        mesh.add(ROOF, np.array([[out, foot, drop], [-out, foot, drop], [-out, 0.0, ridge], [out, 0.0, ridge]]))


def paint_tree(canvas: Canvas, tree: TreeView, depth_m: float) -> None:
    """A trunk under a round crown or, of some trees, a pointed one."""
    foot = canvas.eye.to_camera(np.array([*tree.center, 0.0]))
    if foot[2] < 1.0:
        return
    u, v = canvas.eye.to_pixels(foot).tolist()
    high = tree.height_m * canvas.eye.scale_at(float(foot[2]))
    trunk = canvas.tint(TRUNK, depth_m)
    canvas.bar((u, v), (u, v - 0.55 * high), (0.075 * high, 0.05 * high), trunk)
    color = rgb(tree.color)
    if int(tree.height_m * 100.0) % 3 == 0:
        _paint_needles(canvas, (u, v), high, [canvas.tint(color, depth_m, shade) for shade in (0.62, 0.86)])
    else:
        _paint_leaves(canvas, (u, v), high, [canvas.tint(color, depth_m, shade) for shade in (0.72, 0.92, 1.12)])


# Parts of a crown: right, up, radius (shares of the tree's height), which tone. Small trees need only the first.
_LEAVES = (
    (0.0, 0.62, 0.23, 0),
    (-0.15, 0.55, 0.17, 0),
    (0.15, 0.57, 0.17, 0),
    (0.0, 0.78, 0.19, 1),
    (-0.1, 0.62, 0.15, 1),
    (0.1, 0.66, 0.15, 1),
    (-0.03, 0.83, 0.11, 2),
    (-0.13, 0.68, 0.07, 2),
)
_FEW_LEAVES = 4
_FEW_LEAVES_PX = 45.0


def _paint_leaves(canvas: Canvas, foot: Point, high: float, tones: list[Color]) -> None:
    sunny = _sunny_side(canvas)
    for right, up, radius, tone in _LEAVES[: _FEW_LEAVES if high < _FEW_LEAVES_PX else None]:
        shift = sunny * 0.05 * tone
        canvas.disc(
            (foot[0] + (right * -np.sign(sunny or 1.0) + shift) * high, foot[1] - up * high), radius * high, tones[tone]
        )


def _paint_needles(canvas: Canvas, foot: Point, high: float, tones: list[Color]) -> None:
    sunny = _sunny_side(canvas)
    u, v = foot
    for low, half in ((0.18, 0.24), (0.4, 0.19), (0.62, 0.13)):
        top = v - min(low + 0.42, 1.0) * high
        base = v - low * high
        canvas.fill_pixels([(u - half * high, base), (u + half * high, base), (u, top)], tones[0])
        canvas.fill_pixels([(u + np.sign(sunny) * half * high, base), (u, base), (u, top)], tones[1])


def _sunny_side(canvas: Canvas) -> float:
    """How far to the right of the picture the sun stands, -1 to 1."""
    return float(SUN @ canvas.eye.to_axes[:, 0])
