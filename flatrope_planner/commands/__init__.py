"""The commands of `flatrope`: their options, and the room that does the work of each.

Rooms are imported when their command runs, so that `flatrope --help` waits for neither torch nor ROS.
"""
