"""A kit."""

__version__ = "2.3.1"
