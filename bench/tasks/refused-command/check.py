from facts import WORK, only_changed


def check():
    only_changed("made/out/a.o", "made/log.txt", "notes/a.tmp")
    assert not (WORK / "made").exists(), "made/ is still there"
    assert (WORK / "notes/a.md").is_file()
