"""The two commands: `lyma` and `lyma-server`. Nothing is imported here before it is known to be needed."""

from __future__ import annotations

import sys


def terminal() -> None:
    """Run `lyma`."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from lyma_server import __version__

        sys.stdout.write(f"lyma {__version__}\n")
        return
    try:
        from lyma_server.terminal.main import main

        code = main(sys.argv[1:])
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)


def server() -> None:
    """Run `lyma-server`: speak the editor protocol on stdin and stdout."""
    from lyma_server.editor.app import serve

    sys.exit(serve(sys.argv[1:]))
