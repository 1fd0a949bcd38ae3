"""Lists the public functions that no test file names. Reads the staged copy of the project; imports nothing of it."""

import ast
import re
from pathlib import Path

ROOT = Path("/in")
USUAL = 100
BRANCHES = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.IfExp, ast.BoolOp, ast.Match, ast.comprehension)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def run(args):
    files = sorted(path for path in ROOT.rglob("*.py") if path.is_file())
    tests = [path for path in files if is_test(path)]
    named = set()
    for path in tests:
        named.update(re.findall(r"[A-Za-z_]\w*", read(path)))
    below = (ROOT / args.get("folder", ".")).resolve()
    sources = [path for path in files if path not in tests and path.resolve().is_relative_to(below)]
    gaps, unreadable = [], []
    for path in sources:
        try:
            gaps += gaps_in(path, named)
        except (SyntaxError, ValueError, RecursionError):
            unreadable.append(name_of(path))
    gaps.sort(key=lambda gap: (-gap["branches"], -gap["lines"], gap["file"], gap["line"]))
    most = args.get("most", USUAL)
    return {"found": len(gaps), "gaps": gaps[:most], "tests": len(tests), "unreadable": unreadable}


def is_test(path):
    parts = path.relative_to(ROOT).parts
    in_tests = any(part in ("test", "tests", "testing") for part in parts[:-1])
    return in_tests or path.name.startswith("test_") or path.name.endswith("_test.py") or path.name == "conftest.py"


def gaps_in(path, named):
    tree = ast.parse(read(path))
    return [
        {
            "file": name_of(path),
            "line": node.lineno,
            "function": name,
            "lines": node.end_lineno - node.lineno + 1,
            "branches": sum(isinstance(inner, BRANCHES) for inner in ast.walk(node)),
        }
        for name, node in public_functions(tree)
        if node.name not in named
    ]


def public_functions(tree):
    """Functions of the module and of its classes whose names begin with no underscore."""
    for node in tree.body:
        if isinstance(node, FUNCTIONS) and not node.name.startswith("_"):
            yield node.name, node
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            for inner in node.body:
                if isinstance(inner, FUNCTIONS) and not inner.name.startswith("_"):
                    yield f"{node.name}.{inner.name}", inner


def read(path):
    return path.read_text(encoding="utf-8", errors="replace")


def name_of(path):
    return path.relative_to(ROOT).as_posix()
