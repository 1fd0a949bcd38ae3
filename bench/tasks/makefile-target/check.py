import re

from facts import changed, text


def check():
    assert changed() == {"Makefile"}, f"changed: {changed()}"
    recipes = dict(re.findall(r"^(\w+):[^\n]*\n((?:\t[^\n]*\n?)+)", text("Makefile"), re.MULTILINE))
    assert re.search(r"^dist:.*\ball\b", text("Makefile"), re.MULTILINE), "dist does not depend on all"
    assert re.search(r"tar .*out\.tar .*out\.txt", recipes.get("dist", "")), "dist packs nothing, or not after a tab"
    assert "out.tar" in recipes["clean"] and "out.txt" in recipes["clean"], "clean leaves something"
    assert re.search(r"^\.PHONY:.*\bdist\b", text("Makefile"), re.MULTILINE), "dist is not phony"
