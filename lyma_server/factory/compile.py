"""From the text of an agent to its bundle. Pure: no clock, model, network, environment, locale or disk.

The same meaning gives the same bytes, however it is spelt: defaults are written out, texts are in NFC with LF, lists whose
order means nothing are sorted and unique, JSON is canonical.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import evolve, field, frozen

from lyma_server.config.model import CeilingSettings
from lyma_server.factory import tool_code
from lyma_server.factory.bundle import INSTRUCTIONS, Bundle, make_bundle
from lyma_server.factory.canonical import canonical
from lyma_server.factory.characters import find_hidden, normal
from lyma_server.factory.diagnostic import MOST, Diagnostic, of_mistakes, refuse
from lyma_server.factory.leaks import find_leak
from lyma_server.factory.schema_subset import LARGEST, parse_schema
from lyma_server.factory.spec import as_json, named_files
from lyma_server.factory.spec_text import read_spec
from lyma_server.factory.versions import BUILTIN_TOOLS, MANIFEST_FORMAT, RUNNER_ABI, SANDBOX_PROFILE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from lyma_server.config.mistakes import Mistake
    from lyma_server.factory.spec import Spec
    from lyma_server.protocol.base import Json


@frozen
class Source:
    """An agent as it is written: the bytes of agent.toml, and of the files beside it by relative path."""

    text: bytes
    files: Mapping[str, bytes] = field(factory=dict)


@frozen
class Examined:
    """The bundle, or all that stands against it."""

    bundle: Bundle | None
    diagnostics: tuple[Diagnostic, ...] = ()


def compile_agent(source: Source, ceiling: CeilingSettings | None = None) -> Bundle:
    """Compile an agent. Raises SpecInvalid or CompileFailed, whose data holds all diagnostics."""
    examined = examine(source, ceiling)
    if examined.bundle is None:
        refuse(examined.diagnostics)
        raise AssertionError("no bundle and nothing against it")
    return examined.bundle


def examine(source: Source, ceiling: CeilingSettings | None = None) -> Examined:
    """Compile an agent and raise nothing: what an editor shows as one types."""
    mistakes: list[Mistake] = []
    spec = read_spec(source.text, ceiling or CeilingSettings(), mistakes)
    if spec is None:
        return Examined(None, of_mistakes(mistakes, source.text.decode(errors="replace")))
    diagnostics: list[Diagnostic] = list(_twins(spec))
    files = {INSTRUCTIONS: spec.instructions.encode()}
    for name in named_files(spec):
        files[name] = _read_file(name, source.files.get(name), diagnostics)
    if diagnostics:
        return Examined(None, tuple(diagnostics[:MOST]))
    return Examined(make_bundle(_facts(spec), files))


def _facts(spec: Spec) -> dict[str, Json]:
    """The manifest without its files. The instructions are one of those."""
    written = as_json(spec)
    del written["instructions"]
    return {
        "format": MANIFEST_FORMAT,
        "kind": "data",
        "spec": written,
        "runner_abi": RUNNER_ABI,
        "sandbox_profile": SANDBOX_PROFILE,
        "builtin_tools": {name: BUILTIN_TOOLS[name] for name in spec.tools.allow},
        "delegates": list(spec.delegate.agents),
    }


def _twins(spec: Spec) -> Iterator[Diagnostic]:
    """Files whose names some file systems cannot tell apart."""
    seen: dict[str, str] = {}
    for name in named_files(spec):
        twin = seen.setdefault(name.casefold(), name)
        if twin != name:
            yield Diagnostic("case_twin", "", None, f"{name} differs from {twin} in case only.", "rename one", name)


def _read_file(name: str, content: bytes | None, diagnostics: list[Diagnostic]) -> bytes:
    """The bytes of one file as they go into the bundle; what stands against it goes to `diagnostics`."""
    if content is None:
        hint = f"write {name} beside agent.toml"
        diagnostics.append(Diagnostic("missing_file", "", None, f"{name} is named and not there.", hint, name))
        return b""
    if len(content) > LARGEST:
        problem = f"{name} has {len(content)} bytes, at most {LARGEST} are allowed."
        diagnostics.append(Diagnostic("too_large", "", None, problem, "shorten it", name))
        return b""
    try:
        text = content.decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        diagnostics.append(Diagnostic("not_utf8", "", line, f"{name} is not UTF-8.", "save it as UTF-8", name))
        return b""
    found = _named(name, _text_faults(text))
    if not found:
        text, found = _by_kind(name, normal(text))
    diagnostics += found
    return text.encode()


def _text_faults(text: str) -> Iterator[Diagnostic]:
    if (hidden := find_hidden(text)) is not None:
        yield Diagnostic("hidden_character", "", hidden.line, f"holds {hidden.name}", "remove it")
    if (leak := find_leak(text)) is not None:
        hint = "remove it; an agent needs no secret"
        yield Diagnostic("secret", "", leak.line, f"holds what looks like {leak.name}", hint)


def _by_kind(name: str, text: str) -> tuple[str, list[Diagnostic]]:
    """The final text of a tool's code or of a schema, and its faults."""
    if name.endswith(".py"):
        faults = tool_code.find_faults(text)
        return text, [
            Diagnostic(each.code, "", each.line, f"{name} {each.problem}.", each.hint, name) for each in faults
        ]
    schema, wrong = parse_schema(text)
    found = [
        Diagnostic("bad_schema", place, None, f"{name} {_placed(place, problem)}.", hint, name)
        for place, problem, hint in wrong
    ]
    if found:
        return text, found
    schema.pop("$schema", None)
    text = normal(canonical(schema).decode())
    return text, _named(name, _text_faults(text))  # escapes may have hidden something


def _named(name: str, found: Iterable[Diagnostic]) -> list[Diagnostic]:
    return [evolve(each, file=name, message=f"{name} {each.message}.") for each in found]


def _placed(place: str, problem: str) -> str:
    return f"at {place} {problem}" if place else problem
