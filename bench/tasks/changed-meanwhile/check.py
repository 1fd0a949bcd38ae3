from facts import only_changed, text


def check():
    only_changed("limits.py")
    assert text("limits.py") == "RETRIES = 5\nTIMEOUT = 10\n", "limits.py is not as wanted"
