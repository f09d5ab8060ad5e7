"""Appearance of a scene: light, colours, buildings and trees. None of it says anything about what to do."""

import numpy as np

from flatrope_planner.simulation.road import RoadLayout
from flatrope_planner.simulation.scene import Split
from flatrope_planner.simulation.view import Appearance, BuildingView, TreeView, VehicleKind

# BGR.
VEHICLE_COLORS = (
    (200, 200, 205),
    (60, 60, 65),
    (150, 90, 40),
    (40, 40, 150),
    (70, 120, 60),
    (235, 235, 235),
    (90, 140, 190),
    (120, 120, 125),
)
CLOTHES = ((60, 40, 160), (150, 80, 30), (40, 120, 200), (70, 70, 70), (120, 40, 120), (50, 140, 60))
WALLS = ((140, 150, 165), (110, 125, 150), (160, 165, 170), (95, 110, 140), (130, 120, 115), (150, 175, 190))

Color = tuple[int, int, int]


def vary(rng: np.random.Generator, color: Color, spread: int) -> Color:
    """A colour near the given one."""
    b, g, r = (int(np.clip(c + rng.integers(-spread, spread + 1), 0, 255)) for c in color)
    return b, g, r


def pick(rng: np.random.Generator, colors: tuple[Color, ...]) -> Color:
    """One of the colours, slightly varied."""
    return vary(rng, colors[int(rng.integers(len(colors)))], 12)


def draw_kind(rng: np.random.Generator) -> VehicleKind:
    """Mostly cars, some vans, few trucks."""
    kinds = (VehicleKind.CAR, VehicleKind.VAN, VehicleKind.TRUCK)
    return kinds[int(rng.choice(3, p=[0.7, 0.2, 0.1]))]


def draw_appearance(rng: np.random.Generator, split: Split) -> Appearance:
    """Daylight of many kinds; the on-shelf split is darker and hazier than anything trained on."""
    if split is Split.ON_SHELF:
        brightness, haze_m = float(rng.uniform(0.45, 0.62)), float(rng.uniform(90.0, 150.0))
    else:
        brightness = float(rng.uniform(0.7, 1.1))
        haze_m = float(rng.uniform(200.0, 900.0))
    overcast = float(rng.uniform())
    top = tuple(
        round((1 - overcast) * blue + overcast * grey)
        for blue, grey in zip((230, 170, 100), (190, 185, 180), strict=True)
    )
    return Appearance(
        sky_top=vary(rng, (top[0], top[1], top[2]), 12),
        sky_horizon=vary(rng, (235, 225, 212), 12),
        ground=vary(rng, (78, 128, 98), 25),
        asphalt=vary(rng, (92, 90, 88), 16),
        brightness=brightness,
        haze_m=haze_m,
        noise=float(rng.uniform(1.0, 4.0)),
    )


def draw_surroundings(
    rng: np.random.Generator, layout: RoadLayout, split: Split, gap: tuple[float, float] | None
) -> tuple[tuple[BuildingView, ...], tuple[TreeView, ...]]:
    """Buildings and trees on both sides, off the asphalt and out of the stretch `gap` (s from, s to; a junction)."""
    buildings: list[BuildingView] = []
    trees: list[TreeView] = []
    density = 1.8 if split is Split.ON_SHELF else float(rng.uniform(0.3, 1.2))
    for side in (-1, 1):
        edge = layout.left_edge_m if side > 0 else layout.right_edge_m
        s = layout.line.first_s_m + 60.0
        while s < layout.line.last_s_m - 20.0:
            s += float(rng.uniform(9.0, 22.0)) / density
            if gap and gap[0] - 14.0 < s < gap[1] + 14.0:
                continue
            if rng.uniform() < 0.45:
                depth = float(rng.uniform(8.0, 14.0))
                x, y, yaw = layout.line.at(s, edge + side * (float(rng.uniform(5.0, 12.0)) + depth / 2.0))
                buildings.append(
                    BuildingView(
                        (x, y),
                        yaw,
                        float(rng.uniform(8.0, 18.0)),
                        depth,
                        float(rng.uniform(5.0, 16.0)),
                        pick(rng, WALLS),
                    )
                )
            else:
                x, y, _ = layout.line.at(s, edge + side * float(rng.uniform(3.5, 12.0)))
                trees.append(TreeView((x, y), float(rng.uniform(4.0, 9.0)), vary(rng, (50, 110, 60), 25)))
    return tuple(buildings), tuple(trees)
