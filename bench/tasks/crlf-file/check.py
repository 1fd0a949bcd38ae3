from facts import WORK, only_changed


def check():
    only_changed("settings.ini")
    wanted = b"[server]\nhost = localhost\nport = 8443\ntls = on\n\n[log]\nlevel = info\n"
    data = (WORK / "settings.ini").read_bytes()
    assert data.replace(b"\r\n", b"\n") == wanted, "the settings are not as wanted"
    assert data.count(b"\n") == data.count(b"\r\n") == 7, "not every line ends as in Windows"
