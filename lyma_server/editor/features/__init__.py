"""One module a group of methods."""
