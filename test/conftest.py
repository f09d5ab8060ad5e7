"""Set-up of all tests: their ROS traffic stays on this machine and in a domain of its own."""

import os

# Before anything imports rclpy. 1 to 100: domains whose ports lie below the ephemeral ones.
os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
os.environ["ROS_DOMAIN_ID"] = str(1 + os.getpid() % 100)
