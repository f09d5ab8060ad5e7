"""From sensor samples to a plan and from a plan to a command. Knows neither ROS nor torch."""
