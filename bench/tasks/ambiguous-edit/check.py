from facts import only_changed, python


def check():
    only_changed("handlers.py")
    program = "from handlers import *; s = {'a': 1}; print(read(s, 'a'), write(s, 'b', 2), delete(s, 'a'), s)"
    assert python(program) == "(200, 1) (200, None) (204, None) {'b': 2}", "they answer otherwise"
