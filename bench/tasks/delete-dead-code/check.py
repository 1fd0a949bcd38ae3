import ast

from facts import only_changed, own_tests_pass, text


def check():
    own_tests_pass()
    only_changed("report.py", "old_report.py")
    tree = ast.parse(text("report.py"))
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert names == {"title", "underline", "report"}, f"report.py defines {sorted(names)}"
