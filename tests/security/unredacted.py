"""`lyma` or `lyma-server` with redaction taken out, to show that what is looked for would be found.

    python -m tests.security.unredacted lyma ask "hello"

Only a test can do this, from outside: the product has no switch for it.
"""

from __future__ import annotations

import sys

from lyma_server import entry, secret


class OpenStream:
    """Lets everything through."""

    def __init__(self, *_: object) -> None:
        pass

    def feed(self, text: str) -> str:
        return text

    def flush(self) -> str:
        return ""


secret.StreamRedactor = OpenStream  # type: ignore[assignment,misc]
secret.Redactor.redact = lambda _self, text: text  # type: ignore[method-assign]
secret.Redactor.finds = lambda _self, _text: False  # type: ignore[method-assign]

if __name__ == "__main__":
    face = {"lyma": entry.terminal, "lyma-server": entry.server}[sys.argv.pop(1)]
    face()
