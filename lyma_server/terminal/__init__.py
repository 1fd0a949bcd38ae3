"""The terminal's face: the `lyma` command."""
