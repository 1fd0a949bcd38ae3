import re
import tarfile

from facts import WORK, changed, run, text


def check():
    assert changed() == {"Makefile"}, f"changed: {changed()}"
    assert re.search(r"^dist:.*\ball\b", text("Makefile"), re.MULTILINE), "dist does not depend on all"
    assert re.search(r"^\.PHONY:.*\bdist\b", text("Makefile"), re.MULTILINE), "dist is not phony"
    run("make", "dist")
    assert packed() == ["out.txt"], "dist does not pack out.txt alone"
    run("make", "clean")
    assert changed() == {"Makefile"}, "clean leaves something"


def packed():
    """The names in out.tar, of which there are none where it is no archive."""
    path = WORK / "out.tar"
    if not path.is_file() or not tarfile.is_tarfile(path):
        return []
    with tarfile.open(path) as archive:
        return [name.removeprefix("./") for name in archive.getnames()]
