"""Python: a small abstract interpreter over its own syntax tree. Nothing of the text is ever run."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from attrs import define, frozen

from lyma_server.executor.forks import FORK_BOMB
from lyma_server.executor.languages.python_calls import CALLS, ENDLESS, SPAWNS
from lyma_server.executor.languages.python_methods import METHODS
from lyma_server.executor.languages.python_values import Name, Place, Value, operate, subscript, text_of

if TYPE_CHECKING:
    from lyma_server.executor.evaluation import Machine
    from lyma_server.executor.world import World

MAX_DEPTH = 12
MAX_ITEMS = 64
Body: TypeAlias = Sequence[ast.stmt]


@frozen
class Definition:
    """A function of the program."""

    parameters: tuple[str, ...]
    body: tuple[ast.stmt, ...]


@define
class Reader:
    """Follows one Python program; `start` hands what it would do to the machine as commands."""

    machine: Machine
    world: World
    names: dict[str, Value]
    depth: int = 0
    arguments: tuple[str, ...] = ()
    connects: bool = False
    duplicates: bool = False

    def start(self, *argv: str) -> None:
        from lyma_server.executor.external import start

        start(self.machine, self.world.fork(), argv)

    def shell(self, text: str) -> None:
        self.machine.run_loose(self.world, text)

    def program(self, text: str) -> None:
        """`exec(text)`."""
        from lyma_server.executor.languages import read_program

        if self.depth < MAX_DEPTH:
            read_program(self.machine, self.world, "python", text, ("python", "-c", text))

    def run(self, body: Body) -> None:
        for statement in body:
            self.machine.step()
            handler = _STATEMENTS.get(type(statement))
            if handler is not None:
                handler(self, statement)
            else:
                self._generic(statement)

    def _generic(self, statement: ast.stmt) -> None:
        """Evaluate the expressions of any other statement, then follow its bodies."""
        for field in ast.iter_child_nodes(statement):
            if isinstance(field, ast.expr):
                self.value(field)
        for block in ("body", "orelse", "finalbody"):
            self.run(getattr(statement, block, ()))
        for handler in getattr(statement, "handlers", ()):
            self.run(handler.body)

    def value(self, node: ast.expr | None) -> Value:
        """What an expression is, None where that is not known."""
        if node is None:
            return None
        self.machine.step()
        handler = _EXPRESSIONS.get(type(node))
        if handler is not None:
            return handler(self, node)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.value(child)
        return None

    def bind(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            self.names[target.id] = value
        elif isinstance(target, ast.Tuple | ast.List) and isinstance(value, list):
            for inner, item in zip(target.elts, value, strict=False):
                self.bind(inner, item)

    def items(self, value: Value) -> list[Value]:
        """What a loop over `value` goes through."""
        if isinstance(value, list):
            return value[:MAX_ITEMS]
        return list(value[:MAX_ITEMS]) if isinstance(value, str) else [None]

    def call(self, function: Value, arguments: list[Value], named: dict[str, Value]) -> Value:
        if isinstance(function, Definition):
            return self._call_definition(function, arguments, named)
        if isinstance(function, Name):
            short = function.dotted.removeprefix("builtins.")
            handler = CALLS.get(short)
            return handler(self, arguments, named) if handler else None
        return None

    def _call_definition(self, function: Definition, arguments: list[Value], named: dict[str, Value]) -> Value:
        if self.depth >= MAX_DEPTH:
            return None
        before = dict(self.names)
        self.names.update(dict.fromkeys(function.parameters))
        self.names.update(dict(zip(function.parameters, arguments, strict=False)))
        self.names.update({name: value for name, value in named.items() if name in function.parameters})
        self.depth += 1
        try:
            self.run(function.body)
            result = self.names.get("return value")
        finally:
            self.depth -= 1
            self.names = before
        return result


def read_python(machine: Machine, world: World, text: str, argv: tuple[str, ...]) -> None:
    """Follow a Python program. What does not parse does not run, unless an older Python reads it: then its text is scanned."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        from lyma_server.executor.languages.scripts import read_script

        read_script(machine, world, "python", text)
        return
    after = argv[argv.index("-c") + 2 :] if "-c" in argv else argv[2:]
    Reader(machine, world, {}, arguments=("-c", *after)).run(tree.body)


def _import(reader: Reader, node: ast.Import) -> None:
    for alias in node.names:
        name = alias.name if alias.asname else alias.name.split(".")[0]
        reader.names[alias.asname or name] = Name(name)


def _import_from(reader: Reader, node: ast.ImportFrom) -> None:
    for alias in node.names:
        if alias.name == "*":
            reader.names.update(
                {name.rpartition(".")[2]: Name(name) for name in CALLS if name.rpartition(".")[0] == node.module}
            )
        reader.names[alias.asname or alias.name] = Name(f"{node.module}.{alias.name}")


def _assign(reader: Reader, node: ast.Assign | ast.AnnAssign | ast.AugAssign) -> None:
    value = reader.value(node.value)
    if isinstance(node, ast.AugAssign):
        value = operate(node.op, reader.value(node.target), value)
    for target in node.targets if isinstance(node, ast.Assign) else (node.target,):
        reader.bind(target, value)


def _define(reader: Reader, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    parameters = tuple(argument.arg for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs))
    definition = Definition(parameters, tuple(node.body))
    reader.names[node.name] = definition
    reader.call(definition, [], {})


def _is_endless(reader: Reader, iterable: ast.expr) -> bool:
    function = reader.value(iterable.func) if isinstance(iterable, ast.Call) else None
    return isinstance(function, Name) and function.dotted in ENDLESS


def _note_bomb(reader: Reader, iterable: ast.expr, node: ast.AST) -> None:
    """A loop without end that starts a process every time."""
    if _is_endless(reader, iterable) and any(_is_spawn(reader, inner) for inner in ast.walk(node)):
        reader.machine.emit(reader.world, (FORK_BOMB,))


def _for(reader: Reader, node: ast.For | ast.AsyncFor) -> None:
    _note_bomb(reader, node.iter, node)
    for item in reader.items(reader.value(node.iter)):
        reader.bind(node.target, item)
        reader.run(node.body)
    reader.run(node.orelse)


def _while(reader: Reader, node: ast.While) -> None:
    endless = isinstance(node.test, ast.Constant) and bool(node.test.value)
    if endless and any(_is_spawn(reader, inner) for inner in ast.walk(node)):
        reader.machine.emit(reader.world, (FORK_BOMB,))
    reader.value(node.test)
    reader.run(node.body)
    reader.run(node.orelse)


def _is_spawn(reader: Reader, node: ast.AST) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute | ast.Name):
        return False
    function = reader.value(node.func)
    return isinstance(function, Name) and function.dotted in SPAWNS


def _with(reader: Reader, node: ast.With | ast.AsyncWith) -> None:
    for item in node.items:
        value = reader.value(item.context_expr)
        if item.optional_vars is not None:
            reader.bind(item.optional_vars, value)
    reader.run(node.body)


def _return(reader: Reader, node: ast.Return) -> None:
    reader.names["return value"] = reader.value(node.value)


def _constant(_reader: Reader, node: ast.Constant) -> Value:
    return node.value if isinstance(node.value, str | bytes | int) else None


def _name(reader: Reader, node: ast.Name) -> Value:
    return reader.names[node.id] if node.id in reader.names else Name(node.id)


def _attribute(reader: Reader, node: ast.Attribute) -> Value:
    owner = reader.value(node.value)
    if isinstance(owner, Name):
        if owner.dotted == "sys" and node.attr == "argv":
            return list(reader.arguments)
        known = CALLS.get("attribute " + owner.dotted + "." + node.attr)
        return known(reader, [], {}) if known else Name(f"{owner.dotted}.{node.attr}")
    if isinstance(owner, Place) and node.attr in ("parent", "name"):
        return Place(owner.text.rpartition("/")[0] or "/") if node.attr == "parent" else owner.text.rpartition("/")[2]
    return owner if isinstance(owner, str) and node.attr in ("text", "content") else None


def _call(reader: Reader, node: ast.Call) -> Value:
    arguments = [value for argument in node.args for value in _spread(reader, argument)]
    named = {keyword.arg: reader.value(keyword.value) for keyword in node.keywords if keyword.arg}
    if isinstance(node.func, ast.Attribute):
        owner = reader.value(node.func.value)
        if not isinstance(owner, Name):
            method = METHODS.get(node.func.attr)
            return method(reader, owner, arguments, named) if method else None
    return reader.call(reader.value(node.func), arguments, named)


def _spread(reader: Reader, argument: ast.expr) -> list[Value]:
    if isinstance(argument, ast.Starred):
        return reader.items(reader.value(argument.value))
    return [reader.value(argument)]


def _joined(reader: Reader, node: ast.JoinedStr) -> Value:
    return "".join(text_of(reader.value(part)) for part in node.values)


def _sequence(reader: Reader, node: ast.List | ast.Tuple | ast.Set) -> Value:
    return [value for item in node.elts for value in _spread(reader, item)]


def _comprehension(reader: Reader, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Value:
    found: list[Value] = []
    for generator in node.generators:
        _note_bomb(reader, generator.iter, node)

    def descend(index: int) -> None:
        if index == len(node.generators):
            found.append(reader.value(node.elt))
            return
        for item in reader.items(reader.value(node.generators[index].iter)):
            reader.bind(node.generators[index].target, item)
            descend(index + 1)

    descend(0)
    return found


def _lambda(reader: Reader, node: ast.Lambda) -> Value:
    body = ast.Return(value=node.body, lineno=node.lineno, col_offset=node.col_offset)
    definition = Definition(tuple(argument.arg for argument in node.args.args), (body,))
    reader.call(definition, [], {})
    return definition


def _choice(reader: Reader, node: ast.IfExp | ast.BoolOp) -> Value:
    values = [reader.value(child) for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
    known = [value for value in values[isinstance(node, ast.IfExp) :] if value is not None]
    return known[0] if known else None


def _unary(reader: Reader, node: ast.UnaryOp) -> Value:
    value = reader.value(node.operand)
    return -value if isinstance(node.op, ast.USub) and isinstance(value, int) else None


def _subscript(reader: Reader, node: ast.Subscript) -> Value:
    owner = reader.value(node.value)
    if isinstance(owner, Name) and owner.dotted == "os.environ":
        return CALLS["os.getenv"](reader, [reader.value(node.slice)], {})
    if isinstance(node.slice, ast.Slice):
        bounds = [reader.value(part) for part in (node.slice.lower, node.slice.upper, node.slice.step)]
        return subscript(owner, slice(*(bound if isinstance(bound, int) else None for bound in bounds)))
    index = reader.value(node.slice)
    return subscript(owner, index) if isinstance(index, int) else None


def _bind_inline(reader: Reader, node: ast.NamedExpr) -> Value:
    value = reader.value(node.value)
    reader.bind(node.target, value)
    return value


_STATEMENTS: dict[type, Callable[[Reader, Any], None]] = {
    ast.Import: _import, ast.ImportFrom: _import_from, ast.Assign: _assign, ast.AnnAssign: _assign, ast.AugAssign: _assign,
    ast.FunctionDef: _define, ast.AsyncFunctionDef: _define, ast.For: _for, ast.AsyncFor: _for, ast.While: _while,
    ast.With: _with, ast.AsyncWith: _with, ast.Return: _return,
}  # fmt: skip
_EXPRESSIONS: dict[type, Callable[[Reader, Any], Value]] = {
    ast.Constant: _constant, ast.Name: _name, ast.Attribute: _attribute, ast.Call: _call, ast.JoinedStr: _joined,
    ast.List: _sequence, ast.Tuple: _sequence, ast.Set: _sequence, ast.ListComp: _comprehension, ast.SetComp: _comprehension,
    ast.GeneratorExp: _comprehension, ast.Lambda: _lambda, ast.IfExp: _choice, ast.BoolOp: _choice, ast.Subscript: _subscript,
    ast.FormattedValue: lambda reader, node: reader.value(node.value),
    ast.UnaryOp: _unary, ast.Await: lambda reader, node: reader.value(node.value),
    ast.NamedExpr: _bind_inline,
    ast.BinOp: lambda reader, node: operate(node.op, reader.value(node.left), reader.value(node.right)),
}  # fmt: skip
