"""How files of bags say in which language a message is defined, in the words of rosbags."""

from rosbags.interfaces import MessageDefinition, MessageDefinitionFormat

FORMATS = {"ros2msg": MessageDefinitionFormat.MSG, "ros2idl": MessageDefinitionFormat.IDL}
NO_DEFINITION = MessageDefinition(MessageDefinitionFormat.NONE, "")
