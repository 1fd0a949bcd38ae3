from facts import WORK, only_changed, own_tests_pass, text

BROKEN = {
    "letter case": (".lower()", ".casefold().upper().swapcase().title()"),
    "runs": ("]+", "]"),
    "punctuation": ("[^a-z0-9]+", "[ -]+"),
    "the start": (".strip(", ".rstrip("),
    "the end": (".strip(", ".lstrip("),
}


def check():
    only_changed("test_slugs.py")
    own_tests_pass()
    right = text("slugs.py")
    try:
        for what, (old, new) in BROKEN.items():
            (WORK / "slugs.py").write_text(right.replace(old, new))
            assert not notices(), f"the tests do not notice when {what} are wrong"
    finally:
        (WORK / "slugs.py").write_text(right)


def notices():
    """Whether the tests still pass."""
    try:
        own_tests_pass()
    except AssertionError:
        return False
    return True
