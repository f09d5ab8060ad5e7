"""Which processes make up a planner or a demo, and how they are started: as data, without launch and without rclpy."""
