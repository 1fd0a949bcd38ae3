"""What an agent can do, computed from its manifest: sentences for the person who is to approve it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import frozen

from lyma_server.factory.bundle import TREE, tools_of
from lyma_server.factory.trees import entries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from lyma_server.factory.bundle import Bundle


@frozen
class Capability:
    """`can` is false for what an agent might do and this one cannot."""

    about: str
    text: str
    can: bool = True


def capabilities(bundle: Bundle) -> tuple[Capability, ...]:
    """All of them, what it cannot do included; the most serious first."""
    return tuple(capability for describe in _DESCRIBING for capability in describe(bundle))


def _code(bundle: Bundle) -> Iterator[Capability]:
    tools = tools_of(bundle.facts)
    if bundle.kind != "data":
        yield Capability("code", _program(bundle))
    elif not tools:
        yield Capability("code", "brings no code of its own", can=False)
    for tool in tools:
        lines = bundle.text(tool["file"]).count("\n")
        yield Capability("code", f"runs its own Python in its sandbox: {tool['name']} ({tool['file']}, {lines} lines)")


def _program(bundle: Bundle) -> str:
    sizes = [entry.get("size", 0) for _, entry in entries(bundle.files[TREE])]
    words = " ".join(bundle.program)
    what = "drafts and compiles agents by" if bundle.kind == "factory" else "runs"
    return f"{what} a program of its own in its sandbox: {words} ({len(sizes):,} files, {size_text(sum(sizes))}; {TREE} names each)"


def _files(bundle: Bundle) -> Iterator[Capability]:
    files, allowed = bundle.facts["spec"]["files"], bundle.facts["spec"]["tools"]["allow"]
    if files["write"] and ("fs.write" in allowed or bundle.kind == "exec"):
        size = size_text(files["max_write_bytes"])
        yield Capability("write", f"changes {_listed(files['write'])}, as a patch of at most {size}")
    else:
        yield Capability("write", "changes no file", can=False)
    if files["read"]:
        bounds = f"at most {files['max_files']:,} files and {size_text(files['max_read_bytes'])}"
        yield Capability("read", f"reads {_listed(files['read'])} ({bounds}), and sends what it reads to a model")
    else:
        yield Capability("read", "reads no file", can=False)


def _delegation(bundle: Bundle) -> Iterator[Capability]:
    delegate = bundle.facts["spec"]["delegate"]
    if delegate["agents"]:
        yield Capability("agents", f"runs {_listed(delegate['agents'])}, at most {delegate['max_runs']} times")
    else:
        yield Capability("agents", "runs no other agent", can=False)


def _network(_bundle: Bundle) -> Iterator[Capability]:
    yield Capability("network", "has no network; its model is asked by Lyma", can=False)


def _spending(bundle: Bundle) -> Iterator[Capability]:
    spec = bundle.facts["spec"]
    budget, model = spec["budget"], spec["model"]
    yield Capability(
        "money",
        f"spends at most {money_text(budget['max_cost_micros'])}: {budget['max_turns']:,} calls of a {model['class']} model, "
        f"{budget['max_tokens']:,} tokens, {budget['max_tool_calls']:,} tool calls",
    )
    memory = budget["memory_mb"] * budget["processes"]
    product = f" ({budget['processes']} processes of {budget['memory_mb']:,} MiB)" if budget["processes"] > 1 else ""
    yield Capability(
        "machine",
        f"uses at most {budget['wall_s']:,} seconds, {budget['cpu_s']:,} of them of a processor, {memory:,} MiB of "
        f"memory{product} and {budget['scratch_mb']:,} MiB of scratch space",
    )


_DESCRIBING: tuple[Callable[[Bundle], Iterator[Capability]], ...] = (_code, _files, _delegation, _network, _spending)


def size_text(size: int) -> str:
    """Bytes for people, exact where that is short."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size // unit:,} {name}" if size % unit == 0 else f"{size / unit:,.1f} {name}"
    return f"{size:,} bytes"


def money_text(micros: int) -> str:
    """USD micros for people, to the last digit that counts."""
    dollars, rest = divmod(micros, 1_000_000)
    digits = f"{rest:06}".rstrip("0").ljust(2, "0")
    return f"${dollars:,}.{digits}"


def as_json(capability: Capability) -> Mapping[str, Any]:
    """For the wire."""
    return {"about": capability.about, "text": capability.text, "can": capability.can}


def _listed(items: list[str]) -> str:
    return ", ".join(items)
