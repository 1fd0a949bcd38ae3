"""Cuts a list into pages."""


def paginate(items, size):
    """Pages of `size` items; the last one may be shorter."""
    if size < 1:
        raise ValueError("size must be at least 1")
    return [items[at * size : (at + 1) * size] for at in range(len(items) // size)]
