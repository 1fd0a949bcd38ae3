"""Names for addresses."""

import re


def slugify(title):
    """`title` in lower case, with one dash for everything between words, and none at the ends."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
