from money.rounding import half_up


def parse(text):
    """Cents of an amount such as `12.50` or `1,200`."""
    return half_up(float(text.replace(",", ".")) * 100)


def show(cents):
    sign = "-" if cents < 0 else ""
    return f"{sign}{abs(cents) // 100}.{abs(cents) % 100}"
