"""Charts as SVG text: axes, lines, bands and bars, styled by the page's CSS classes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

from flatrope_planner.domain import Floats

# Room around the plot for ticks and labels (px).
LEFT_PX, RIGHT_PX, TOP_PX, BOTTOM_PX = 48, 12, 22, 34


def nice_ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round numbers (1, 2 or 5 times a power of ten apart) inside [low, high]."""
    raw = max(high - low, 1e-9) / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1.0, 2.0, 5.0, 10.0) if m * power >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [i * step for i in range(first, math.floor(high / step + 1e-9) + 1)]


@dataclass
class Chart:
    """A plot with linear axes; draw into it, then take its `svg()`."""

    x_range: tuple[float, float]
    y_range: tuple[float, float]
    x_label: str
    y_label: str
    width_px: int = 1080
    height_px: int = 220
    style: str = "chart"
    _background: list[str] = field(default_factory=list)
    _parts: list[str] = field(default_factory=list)

    def x_px(self, x: float) -> float:
        """Where x is drawn."""
        share = (x - self.x_range[0]) / (self.x_range[1] - self.x_range[0])
        return LEFT_PX + share * (self.width_px - LEFT_PX - RIGHT_PX)

    def y_px(self, y: float) -> float:
        """Where y is drawn; larger is higher."""
        share = (y - self.y_range[0]) / (self.y_range[1] - self.y_range[0])
        return self.height_px - BOTTOM_PX - share * (self.height_px - TOP_PX - BOTTOM_PX)

    def line(self, x: Floats, y: Floats, style: str) -> None:
        """A line through the points; it breaks where one is not finite, and ends where the x axis ends.

        A point that stands alone is a dot.
        """
        stretches: list[list[str]] = [[]]
        for a, b in zip(x.tolist(), y.tolist(), strict=True):
            if math.isfinite(a + b) and self.x_range[0] <= a <= self.x_range[1]:
                stretches[-1].append(f"{self.x_px(a):.1f},{self.y_px(b):.1f}")
            elif stretches[-1]:
                stretches.append([])
        path = "".join(f"M{'L'.join(points)}" for points in stretches if len(points) > 1)
        dots = "".join(f"M{points[0]}h0" for points in stretches if len(points) == 1)
        self._parts.append(f'<path class="{style}" d="{path}"/>')
        if dots:
            self._parts.append(f'<path class="{style} dot" d="{dots}"/>')

    def band(self, x_from: float, x_to: float, text: str, style: str) -> None:
        """A labelled stretch of the x axis, behind everything else."""
        left, right = self.x_px(x_from), self.x_px(x_to)
        self._background.append(
            f'<rect class="{style}" x="{left:.1f}" y="{TOP_PX}" width="{max(right - left, 0):.1f}" '
            f'height="{self.height_px - TOP_PX - BOTTOM_PX}"/>'
            f'<text class="band-label" x="{left + 4:.1f}" y="{TOP_PX + 13}">{escape(text)}</text>'
        )

    def bars(self, x_from: Sequence[float], x_to: Sequence[float], heights: Sequence[float], style: str) -> None:
        """Bars from zero."""
        zero = self.y_px(0.0)
        for left, right, height in zip(x_from, x_to, heights, strict=True):
            top = self.y_px(height)
            self._parts.append(
                f'<rect class="{style}" x="{self.x_px(left):.1f}" y="{top:.1f}" '
                f'width="{max(self.x_px(right) - self.x_px(left) - 0.6, 0.6):.1f}" height="{max(zero - top, 0):.1f}"/>'
            )

    def mark_x(self, x: float, text: str, style: str, line: int = 0) -> None:
        """A vertical line with words beside it, on the given line of text from the top."""
        at, far_right = self.x_px(x), x > 0.7 * self.x_range[1] + 0.3 * self.x_range[0]
        anchor, text_at = ("end", at - 3) if far_right else ("start", at + 3)
        self._parts.append(
            f'<path class="{style}" d="M{at:.1f},{TOP_PX}V{self.height_px - BOTTOM_PX}"/>'
            f'<text class="mark-label" text-anchor="{anchor}" x="{text_at:.1f}" '
            f'y="{TOP_PX + 9 + 13 * line}">{escape(text)}</text>'
        )

    def svg(self) -> str:
        """The chart as an SVG element."""
        head = (
            f'<svg class="{self.style}" viewBox="0 0 {self.width_px} {self.height_px}" role="img" '
            f'aria-label="{escape(self.y_label)}" data-left="{LEFT_PX}" data-right="{RIGHT_PX}" '
            f'data-from="{self.x_range[0]:.4f}" data-to="{self.x_range[1]:.4f}">'
        )
        return head + "".join([*self._background, *self._grid(), *self._parts]) + "</svg>"

    def _grid(self) -> list[str]:
        bottom, right = self.height_px - BOTTOM_PX, self.width_px - RIGHT_PX
        parts = []
        for y in nice_ticks(*self.y_range, count=4):
            parts.append(f'<path class="grid" d="M{LEFT_PX},{self.y_px(y):.1f}H{right}"/>')
            parts.append(
                f'<text class="tick" text-anchor="end" x="{LEFT_PX - 6}" y="{self.y_px(y) + 4:.1f}">{y:g}</text>'
            )
        parts += [
            f'<text class="tick" text-anchor="middle" x="{self.x_px(x):.1f}" y="{bottom + 15}">{x:g}</text>'
            for x in nice_ticks(*self.x_range, count=self.width_px // 100)
        ]
        parts.append(f'<path class="axis" d="M{LEFT_PX},{bottom}H{right}"/>')
        parts.append(
            f'<text class="label" text-anchor="end" x="{right}" y="{bottom + 29}">{escape(self.x_label)}</text>'
        )
        parts.append(f'<text class="label" x="2" y="11">{escape(self.y_label)}</text>')
        return parts
