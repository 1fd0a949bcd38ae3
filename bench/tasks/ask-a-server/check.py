import socket

from facts import WORK, changed, text


def check():
    assert text("answer.txt").strip() == "328350", "the answer is another"
    assert changed() <= {"answer.txt", "port.txt"}, f"changed: {changed()}"
    port = WORK / "port.txt"
    with socket.socket() as probe:
        assert not port.exists() or probe.connect_ex(("127.0.0.1", int(port.read_text()))), "the server still runs"
