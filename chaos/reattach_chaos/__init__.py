"""The chaos kit."""
