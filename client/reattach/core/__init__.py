"""See the room's README."""
