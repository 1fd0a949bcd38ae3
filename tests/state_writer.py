"""A process that hammers the state file, for tests: `python state_writer.py PATH WHO SECONDS`.

Holds marks of its own and ones that all writers share, with growing lengths, records an attempt for each, and prints at
the end what it held the longest for each place, as JSON (wall-clock seconds).
"""

import json
import random
import sys
import time
from pathlib import Path

from lyma_server.router.database import Database
from lyma_server.router.ledger import AttemptRow, Ledger
from lyma_server.router.standing import Mark
from lyma_server.router.state import State


def main(path: str, who: str, seconds: float) -> None:
    database = Database(Path(path))
    state, ledger = State(database), Ledger(database)
    chance = random.Random(who)
    longest: dict[str, float] = {}
    attempts, end = 0, time.time() + seconds
    while time.time() < end:
        subject = chance.choice([f"key:{who}-{chance.randrange(5)}", f"account:shared-{chance.randrange(5)}"])
        length = chance.uniform(100, 3000)
        longest[subject] = max(longest.get(subject, 0.0), time.time() + length)
        state.hold(Mark("anthropic", subject, "sonnet", length, "rate_limit"))
        state.snapshot()
        ledger.record(AttemptRow("s", "anthropic", who, "sonnet", "rate_limit", 1, 1, 1, 0, 1))
        attempts += 1
        if chance.random() < 0.2:
            state.open_breaker("anthropic", "sonnet", 15.0, "overloaded")
            state.learn("anthropic", who, f"org-{chance.randrange(3)}")
        time.sleep(0.001)
    database.flush(60)
    print(json.dumps({"longest": longest, "attempts": attempts, "notices": database.take_notices()}), flush=True)
    if seconds > 1000:
        time.sleep(1000)
    database.close(60)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
