import re

from facts import WORK, files, only_changed, own_tests_pass, python, text


def check():
    own_tests_pass()
    only_changed("README.md", "app/greet.py", "app/users.py", "test_users.py")
    left = [name for name, content in files(WORK).items() if re.search(rb"\bget_user\b", content)]
    assert not left, f"the old name is left in {left}"
    assert python("import app.users as u; print(u.find_user('bob'), u.get_users())") == "2 ['ann', 'bob']"
    assert "`find_user(name)`" in text("README.md")
    assert "find_user" in text("test_users.py")
