from facts import only_changed, own_tests_pass, python


def check():
    own_tests_pass()
    only_changed("pages.py")
    assert python("import pages; print(pages.paginate(list('abcdefg'), 3)[-1])") == "['g']"
