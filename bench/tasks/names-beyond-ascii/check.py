from facts import WORK, only_changed, python, text


def check():
    only_changed("docs/Überblick.md", "größen/maße.py")
    overview = text("docs/Überblick.md")
    assert overview == "# Überblick\n\nSiehe [Maße](../größen/maße.py) – und 日本語 bleibt, wie es ist 🙂.\n"
    assert python("from maße import länge; print(länge(33))", WORK / "größen") == "0.84"
