"""The two commands: `lyma` and `lyma-server`. Nothing is imported here before it is known to be needed."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def terminal() -> None:
    """Run `lyma`."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from lyma_server import __version__

        sys.stdout.write(f"lyma {__version__}\n")
        return
    try:
        from lyma_server.secret import keep_memory_private
        from lyma_server.terminal.main import main

        keep_memory_private()
        code = main(sys.argv[1:], serve)
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)


def server() -> None:
    """Run `lyma-server`: speak the editor protocol on stdin and stdout."""
    sys.exit(serve(sys.argv[1:]))


def serve(argv: Sequence[str]) -> int:
    """Serve the editor until it leaves and return the exit code. Only here do the two faces meet."""
    from lyma_server.editor import app

    return app.serve(argv)
