from facts import only_changed, own_tests_pass, python


def check():
    own_tests_pass()
    only_changed("money/amount.py")
    assert python("from money.amount import *; print(parse('1,000,000.01'), show(100000001))") == "100000001 1000000.01"
    assert python("from money.amount import *; print(parse('0.29'))") == "29", "it rounds otherwise"
