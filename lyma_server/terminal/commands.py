"""The commands, a row each. A command is a module with `add_parser(subparsers)` and `run(args) -> int`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias, cast

from attrs import frozen

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace, _SubParsersAction
    from collections.abc import Callable

    Subparsers: TypeAlias = _SubParsersAction[ArgumentParser]


class Command(Protocol):
    """What a command's module offers."""

    add_parser: Callable[[Subparsers], None]
    run: Callable[[Namespace], int]


@frozen
class Row:
    """A command: its name, its module in this package, and what it does in a few words."""

    name: str
    module: str
    doc: str

    def load(self) -> Command:
        """Import the command; nothing else of the terminal is imported for it."""
        from importlib import import_module

        return cast("Command", import_module(f"lyma_server.terminal.{self.module}"))


COMMANDS: tuple[Row, ...] = (
    Row("ask", "ask", "ask, and stream the answer"),
    Row("chat", "chat", "talk, turn by turn"),
    Row("undo", "undo", "put back what a turn changed"),
    Row("diff", "diff", "show what a turn changed"),
    Row("sessions", "sessions", "list, show, copy and remove conversations"),
    Row("draft-agent", "draft_agent", "write the first version of an agent, by a model or from a template"),
    Row("compile-agent", "compile_agent", "check an agent and compile it to a hash"),
    Row("run-compiled-agent", "run_compiled_agent", "run a compiled and approved agent in its sandbox"),
    Row("approve", "approve", "read a compiled agent and let it run; list and revoke approvals"),
    Row("agents", "agents", "list the compiled agents, and remove some"),
    Row("demo", "demo", "a tour on scripted providers: no key, no cost, about a minute"),
    Row("setup", "setup", "pick a provider and store a key, step by step"),
    Row("keys", "keys", "list, add, remove and wake keys"),
    Row("config", "config", "show, set and find the settings"),
    Row("models", "models", "list the models that your providers offer"),
    Row("status", "status", "show providers, keys (masked), cooldowns and usage"),
    Row("doctor", "doctor", "check everything, and say how to mend it"),
    Row("check", "check", "say whether the blacklist allows a command"),
    Row("exec", "exec", "run a command exactly as the agent would"),
    Row("embedded", "embedded", "install the small model that needs no key, or see whether it is there"),
    Row("schema", "schema", "print the editor protocol as JSON Schema"),
    Row("serve", "serve", "speak the editor protocol on stdin and stdout, as lyma-server does"),
)

BY_NAME = {row.name: row for row in COMMANDS}
