"""Shapes, horizons and rates that every room agrees on.

Sizes that belong to one set of weights (image size, cameras, layers) are not here: they ship with the weights.
"""

# Ego history: 16 poses at 10 Hz, the last one at t0 (Alpamayo's input contract).
HISTORY_POSES = 16
HISTORY_PERIOD_S = 0.1
HISTORY_SPAN_S = (HISTORY_POSES - 1) * HISTORY_PERIOD_S

# Each history pose becomes three delta tokens: x, y, z.
HISTORY_TOKENS = HISTORY_POSES * 3

# Planned trajectory: 64 points at 10 Hz, point i at t0 + (i + 1) * 0.1 s.
FUTURE_POINTS = 64
FUTURE_PERIOD_S = 0.1
FUTURE_SPAN_S = FUTURE_POINTS * FUTURE_PERIOD_S

# Planning oftener than this helps nobody: cameras are no faster.
SHORTEST_PLAN_PERIOD_S = 0.05

# One action of the unicycle: acceleration and curvature.
ACTION_SIZE = 2

# What cameras are called here, in Alpamayo's order.
CAMERA_NAMES = ("cross_left", "front_wide", "cross_right", "rear_left", "rear_tele", "rear_right", "front_tele")

# Cameras of the embedded simulator, by their names in topics.
SIMULATED_CAMERAS = ("front_wide", "front_tele")

NANOSECONDS_PER_SECOND = 1_000_000_000
