"""Quality of service of every topic."""

from rclpy.qos import QoSDurabilityPolicy, QoSProfile, QoSReliabilityPolicy

_BEST_EFFORT = QoSReliabilityPolicy.BEST_EFFORT
_RELIABLE = QoSReliabilityPolicy.RELIABLE

# Subscriptions to sensors match any publisher, and a picture that is late is better lost than queued.
IMAGE_INPUT = QoSProfile(depth=5, reliability=_BEST_EFFORT)
ODOMETRY_INPUT = QoSProfile(depth=50, reliability=_BEST_EFFORT)
# What the planner's parameters call the policies.
RELIABILITIES = {"best_effort": _BEST_EFFORT, "reliable": _RELIABLE}
DURABILITIES = {"volatile": QoSDurabilityPolicy.VOLATILE, "transient_local": QoSDurabilityPolicy.TRANSIENT_LOCAL}
# What CARLA's bridge publishes its sensors and clock with.
BRIDGE_OUTPUT = QoSProfile(depth=10, reliability=_RELIABLE)
# Of plans and commands only the newest one matters.
NEWEST = QoSProfile(depth=1, reliability=_RELIABLE)
# Every message counts, none is of use to those who come later.
REPORT = QoSProfile(depth=10, reliability=_RELIABLE)
# Kept for those who come later.
LATCHED = QoSProfile(depth=32, reliability=_RELIABLE, durability=QoSDurabilityPolicy.TRANSIENT_LOCAL)


def input_profile(reliability: str, durability: str, depth: int) -> QoSProfile:
    """What a subscription with these parameters asks for."""
    return QoSProfile(depth=depth, reliability=RELIABILITIES[reliability], durability=DURABILITIES[durability])
