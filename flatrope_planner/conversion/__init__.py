"""Messages to domain objects and back: messages and numpy only, no node, no torch."""
