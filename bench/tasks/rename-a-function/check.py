import re

from facts import WORK, only_changed, own_tests_pass, python, text


def check():
    own_tests_pass()
    only_changed("README.md", "app/greet.py", "app/users.py", "test_users.py")
    left = [path.name for path in WORK.rglob("*.*") if path.is_file() and re.search(r"\bget_user\b", path.read_text())]
    assert not left, f"the old name is left in {left}"
    assert python("import app.users as u; print(u.find_user('bob'), u.get_users())") == "2 ['ann', 'bob']"
    assert "`find_user(name)`" in text("README.md")
    assert "find_user" in text("test_users.py")
