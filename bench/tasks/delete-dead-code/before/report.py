"""Reports as text."""


def title(name):
    return name.upper()


def underline(text, sign="="):
    return f"{text}\n{sign * len(text)}"


def box(text):
    return frame(text, "|")


def frame(text, sign):
    return f"{sign} {text} {sign}"


def report(name, rows):
    return "\n".join([underline(title(name)), *rows])
