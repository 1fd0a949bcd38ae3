"""A program that plays the person: it starts a command on a pseudo-terminal of its own and types what it is asked for.

    python3 approving.py DIGITS COMMAND ...

Standard library only: it runs wherever a command of the agent's runs. `lyma` cannot tell it from a person, and need not.
"""

import os
import pty
import select
import sys
import time

PATIENCE_S = 20


def main() -> int:
    digits, *command = sys.argv[1:]
    child, terminal = pty.fork()
    if child == 0:
        os.execvp(command[0], command)
    shown, typed = b"", False
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end and select.select([terminal], [], [], PATIENCE_S)[0]:
        try:
            chunk = os.read(terminal, 65536)
        except OSError:
            break
        if not chunk:
            break
        shown += chunk
        if not typed and b"To approve type" in shown:
            os.write(terminal, digits.encode() + b"\n")
            typed = True
    sys.stdout.write(shown.decode(errors="replace")[-400:])
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    sys.exit(main())
