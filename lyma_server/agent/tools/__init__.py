"""The tools that the main agent offers to a model."""
