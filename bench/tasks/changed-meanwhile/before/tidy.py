"""Sets the spaces of limits.py right."""

import re
from pathlib import Path

path = Path("limits.py")
path.write_text(re.sub(r"[ ]*=[ ]*", " = ", path.read_text()))
