"""The two commands: `lyma` and `lyma-server`. Nothing is imported here before it is known to be needed."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn


def terminal() -> None:
    """Run `lyma`."""
    if sys.argv[1:] in (["--version"], ["-V"]) and _says_version():
        return
    try:
        from lyma_server.garbage import collect_rarely

        collect_rarely()
        from lyma_server.secret import keep_memory_private
        from lyma_server.terminal.main import main

        keep_memory_private()
        code = main(sys.argv[1:], serve)
    except KeyboardInterrupt:
        code = 130
    _leave(code)


def _leave(code: int) -> NoReturn:
    """End with `code`. An import that is under way in another thread is cut off with the process: the interpreter's own
    end would stop it in the middle, which not every extension survives.
    """
    import threading

    if any(thread.name == "import" for thread in threading.enumerate()):
        import os

        os._exit(code)  # all that was said is flushed by now
    sys.exit(code)


def _says_version() -> bool:
    """Whether it could be said; if not, all the rest is loaded to say why."""
    from lyma_server import __version__

    try:
        sys.stdout.write(f"lyma {__version__}\n")
        sys.stdout.flush()
    except (OSError, AttributeError):
        return False
    return True


def server() -> None:
    """Run `lyma-server`: speak the editor protocol on stdin and stdout."""
    try:
        code = serve(sys.argv[1:])
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)


def serve(argv: Sequence[str]) -> int:
    """Serve the editor until it leaves and return the exit code. Only here do the two faces meet."""
    from lyma_server.editor import app

    return app.serve(argv)
