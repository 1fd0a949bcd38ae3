from facts import WORK, only_changed


def check():
    only_changed("app.strings")
    wanted = '\ufeff/* Texts */\n"greeting" = "Grüß Gott";\n"parting" = "Tschüs";\n'
    assert (WORK / "app.strings").read_bytes() == wanted.encode("utf-16-le"), "the bytes are not as wanted"
