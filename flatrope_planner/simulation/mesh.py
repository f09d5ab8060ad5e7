"""Solid things as polygons: built once in their own axes, then placed, lit and painted."""

import math
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from flatrope_planner.domain import Floats
from flatrope_planner.simulation.canvas import AMBIENT, DIFFUSE, SUN, Canvas
from flatrope_planner.simulation.projection import NEAR_M, SHIFT

Pose = tuple[float, float, float]
# Polygons that appear smaller than this are left out (px).
LEAST_PX = 1.0


@dataclass(frozen=True)
class Mesh:
    """Groups of polygons, each flat, of one material; painted in their order, those turned away left out."""

    # (N, 3) corners of all polygons, m: forward, left, up of the thing's middle on the ground.
    vertices: Floats
    # Of each group: first vertex, number of polygons, corners of each.
    groups: tuple[tuple[int, int, int], ...]
    # (G, 3) outward, and distance of the group's plane from the origin (m).
    normals: Floats
    offsets: Floats
    # (G,) greatest extent of a polygon (m).
    sizes: Floats
    # (G,) row of the palette.
    materials: NDArray[np.intp]


@dataclass(frozen=True)
class Palette:
    """Colours of the materials (M, 3) RGB, and which of them shine by themselves (M,)."""

    colors: Floats
    shining: NDArray[np.bool_]


class MeshBuilder:
    """Collects polygons."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._polygons: list[Floats] = []
        self._materials: list[int] = []

    def add(self, material: int, polygons: Floats) -> None:
        """Add polygons (N, 3) or (K, N, 3) of one plane, counter-clockwise seen from outside."""
        self._polygons.append(polygons.reshape(-1, *polygons.shape[-2:]))
        self._materials.append(material)

    def build(self) -> Mesh:
        """The mesh of all that was added."""
        groups, normals, start = [], [], 0
        for polygons in self._polygons:
            count, corners, _ = polygons.shape
            groups.append((start, count, corners))
            normals.append(_normal(polygons[0]))
            start += count * corners
        at = np.array([polygons[0, 0] for polygons in self._polygons])
        outward = np.array(normals)
        offsets = np.sum(outward * at, axis=1)
        vertices = np.concatenate([polygons.reshape(-1, 3) for polygons in self._polygons])
        sizes = np.array([np.ptp(polygons[0], axis=0).max() for polygons in self._polygons])
        return Mesh(vertices, tuple(groups), outward, offsets, sizes, np.array(self._materials))


def _normal(polygon: Floats) -> Floats:
    """Newell's normal: right for any simple polygon."""
    normal = np.cross(polygon, np.roll(polygon, -1, axis=0)).sum(axis=0)
    return np.asarray(normal / np.linalg.norm(normal))


def paint_mesh(canvas: Canvas, mesh: Mesh, pose: Pose, palette: Palette, depth_m: float) -> None:
    """Paint a mesh standing at world x, y (m) and yaw (rad)."""
    eye = canvas.eye
    cos, sin = math.cos(pose[2]), math.sin(pose[2])
    to_world = np.array([[cos, sin, 0.0], [-sin, cos, 0.0], [0.0, 0.0, 1.0]])
    offset = np.array([pose[0], pose[1], 0.0]) - eye.position
    # The eye and the sun in the thing's axes.
    toward, sun = -to_world @ offset, to_world @ SUN
    # Seen at a slant, a polygon shrinks by the cosine between its normal and the line of sight.
    cosines = (mesh.normals @ toward - mesh.offsets) / max(float(np.linalg.norm(toward)), NEAR_M)
    facing = (cosines > 0.0) & (mesh.sizes * cosines * eye.scale_at(max(depth_m, NEAR_M)) > LEAST_PX)
    shades = AMBIENT + DIFFUSE * np.maximum(mesh.normals @ sun, 0.0)
    colors = canvas.tints(palette.colors[mesh.materials], shades, depth_m)
    shining = palette.shining[mesh.materials]
    colors[shining] = palette.colors[mesh.materials[shining]]
    seen = mesh.vertices @ (to_world @ eye.to_axes) + offset @ eye.to_axes
    whole = bool(seen[:, 2].min() >= NEAR_M)
    pixels = eye.to_fixed(seen) if whole else None
    for (start, count, corners), color, shown in zip(mesh.groups, colors.tolist(), facing.tolist(), strict=True):
        if not shown:
            continue
        end = start + count * corners
        if pixels is None:
            for polygon in seen[start:end].reshape(count, corners, 3):
                cut = eye.polygon(polygon)
                if cut is not None:
                    canvas.fill(cut, color)
        elif count == 1:
            cv2.fillConvexPoly(canvas.image, pixels[start:end], color, cv2.LINE_AA, SHIFT)
        else:
            cv2.fillPoly(canvas.image, list(pixels[start:end].reshape(count, corners, 2)), color, cv2.LINE_AA, SHIFT)
