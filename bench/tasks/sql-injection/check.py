from facts import only_changed, python

HOSTILE = "x' OR private = 1 OR title = '"
PROGRAM = f"""
import notes
base = notes.open_notes()
for title in ("te", "", {HOSTILE!r}, "it's"):
    print(notes.find(base, title))
"""


def check():
    only_changed("notes.py")
    said = python(PROGRAM.strip())
    assert said.splitlines() == ["['tea']", "['tea', \"it's\"]", "[]", '["it\'s"]'], f"it finds {said}"
