from facts import BEFORE, only_changed, text

ENTRY = "- Empty files no longer end the import (#42).\n"
ABOVE = "- Dates before 1970 are kept (#38).\n"


def check():
    only_changed("CHANGELOG.md")
    assert text("CHANGELOG.md") == text("CHANGELOG.md", BEFORE).replace(ABOVE, ABOVE + ENTRY)
