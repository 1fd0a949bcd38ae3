"""The only package that starts processes, and what confines them."""
