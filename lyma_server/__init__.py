"""Lyma, a coding agent behind an editor."""

__version__ = "0.1.0"
