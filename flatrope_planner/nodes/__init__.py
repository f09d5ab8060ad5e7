"""The ROS 2 nodes: the only room that imports rclpy."""
