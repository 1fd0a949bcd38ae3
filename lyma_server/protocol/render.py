"""Write what is made from the messages: the generated parts of protocol.md. A test fails while they differ.

`python -m lyma_server.protocol.render [ROOT]` writes below ROOT, by default the current folder.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from lyma_server.protocol.luacats import render_lua
from lyma_server.protocol.schema import render_schema
from lyma_server.protocol.tables import errors_table, events_table, methods_table
from lyma_server.protocol.typescript import render_types, render_typescript

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

DOCUMENT = "protocol.md"
PARTS: Mapping[str, Callable[[], str]] = {
    "methods": methods_table,
    "events": events_table,
    "errors": errors_table,
    "types": lambda: f"```ts\n{render_types()}\n```",
}
"""The parts of protocol.md, each between `<!-- generated: NAME -->` and `<!-- end -->`."""

FILES: Mapping[str, Callable[[], str]] = {
    "clients/vscode/src/protocol.gen.ts": render_typescript,
    "clients/neovim/lua/lyma/protocol.lua": render_lua,
}
"""Files of the clients, written where the client's folder exists."""


def fill(document: str) -> str:
    """Replace every generated part. Raises KeyError for an unknown one."""
    return re.sub(
        r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)",
        lambda match: f"{match[1]}{PARTS[match[2]]()}\n{match[3]}",
        document,
        flags=re.DOTALL,
    )


def rendered(root: Path) -> dict[Path, str]:
    """What each generated file below `root` should hold."""
    document = root / DOCUMENT
    texts = {document: fill(document.read_text(encoding="utf-8"))}
    texts |= {root / name: render() for name, render in FILES.items() if (root / name).parent.is_dir()}
    return texts


def main(argv: list[str]) -> None:
    """Write them all."""
    for path, text in rendered(Path(argv[0] if argv else ".")).items():
        path.write_text(text, encoding="utf-8")


__all__ = ["fill", "main", "render_lua", "render_schema", "render_types", "render_typescript", "rendered"]

if __name__ == "__main__":
    main(sys.argv[1:])
