"""Vision-language-action planning for ROS 2 with an exactly verified speculative reasoner."""
