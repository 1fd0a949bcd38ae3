from facts import WORK, only_changed


def check():
    only_changed("prices.csv")
    wanted = "\ufeffname;price\r\ncafé;2.80\r\ntea;3.20\r\ncocoa;4.10\r\n".encode()
    data = (WORK / "prices.csv").read_bytes()
    assert data.startswith(wanted[:3]) and data.count(wanted[:3]) == 1, "the mark at the beginning is not as it was"
    assert data == wanted, "the rows are not as wanted"
