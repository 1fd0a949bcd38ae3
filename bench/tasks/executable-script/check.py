import os

from facts import WORK, only_changed, run


def check():
    only_changed("count.sh")
    assert os.access(WORK / "count.sh", os.X_OK), "count.sh is not executable any more"
    for name in ("a b", "c"):
        (WORK / name).touch()
    assert run("./count.sh", "a b", "c", "none").strip() == "2", "it counts wrongly"
