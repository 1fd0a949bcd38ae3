"""Cooldowns, breakers and learned accounts on disk: shared, private, and never in the way."""

import os
import sqlite3
import stat
import time

import pytest

from lyma_server.router.database import Database
from lyma_server.router.standing import Mark
from lyma_server.router.state import DAY_S, State


class Clocks:
    """A wall clock that can jump and a monotonic one that cannot."""

    def __init__(self, wall: float = 1_790_000_000.0) -> None:
        self.wall_now = wall
        self.now = 1000.0

    def pass_time(self, seconds: float) -> None:
        self.wall_now += seconds
        self.now += seconds

    def wall(self) -> float:
        return self.wall_now

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clocks():
    return Clocks()


@pytest.fixture
def open_state(tmp_path, clocks):
    opened = []

    def opener(path=tmp_path / "state.db", clocks=clocks) -> State:
        state = State(Database(path), wall=clocks.wall, monotonic=clocks.monotonic)
        opened.append(state)
        return state

    yield opener
    for state in opened:
        state.database.close()


PLACE = ("anthropic", "key:aaa", "sonnet")


def mark(seconds=60.0, place=PLACE, reason="rate_limit", stamp=""):
    return Mark(*place, seconds, reason, stamp)


def remaining(state, clocks, place=PLACE):
    held = state.snapshot().marks.get(place)
    return None if held is None else held.until - clocks.now


def test_a_key_cooled_by_one_process_is_cooled_for_another(open_state, clocks):
    one, other = open_state(), open_state()
    assert remaining(other, clocks) is None
    one.hold(mark(60))
    assert remaining(one, clocks) == 60
    assert one.database.flush()
    assert remaining(other, clocks) == pytest.approx(60, abs=0.01)
    assert other.snapshot().marks[PLACE].reason == "rate_limit"


def test_the_file_is_private(open_state, tmp_path):
    state = open_state()
    state.hold(mark())
    assert state.database.flush()
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes["state.db"] == 0o600
    assert set(modes.values()) == {0o600}


def test_a_file_open_to_others_is_closed_to_them(open_state, tmp_path):
    (tmp_path / "state.db").touch(0o644)
    (tmp_path / "state.db").chmod(0o644)
    open_state().snapshot()
    assert stat.S_IMODE((tmp_path / "state.db").stat().st_mode) == 0o600


def test_a_shorter_mark_never_shortens_a_longer_one(open_state, clocks):
    one, other = open_state(), open_state()
    one.hold(mark(3 * 3600, reason="rate_limit"))
    one.hold(mark(5, reason="permission"))
    assert remaining(one, clocks) == 3 * 3600
    one.database.flush()
    other.hold(mark(7, reason="permission"))
    other.database.flush()
    assert remaining(open_state(), clocks) == pytest.approx(3 * 3600, abs=0.01)
    assert open_state().snapshot().marks[PLACE].reason == "rate_limit"


def test_strikes_count_cooldowns_and_a_success_ends_them(open_state, clocks):
    state, other = open_state(), open_state()
    for strikes in (1, 2, 3):
        state.hold(mark(60))
        state.hold(mark(60))  # another call that met the same limit
        assert state.snapshot().marks[PLACE].strikes == strikes
        state.database.flush()
        assert other.snapshot().marks[PLACE].strikes == strikes
        clocks.pass_time(61)
    other.answered(PLACE)
    other.database.flush()
    assert state.snapshot().marks[PLACE].strikes == 0
    state.hold(mark(60))
    state.database.flush()
    assert other.snapshot().marks[PLACE].strikes == 1


def test_a_success_without_strikes_writes_nothing(open_state):
    state = open_state()
    state.hold(mark())
    state.answered(PLACE)
    state.database.flush()
    before = state.database.version()
    state.answered(PLACE)
    state.answered(("openai", "key:bbb", "gpt"))
    state.database.flush()
    assert state.database.version() == before


def test_old_rows_are_ignored(open_state, clocks):
    one = open_state()
    one.hold(mark(DAY_S))
    one.database.flush()
    clocks.pass_time(DAY_S + 1)
    assert remaining(open_state(), clocks) is None


@pytest.mark.parametrize("jump", [DAY_S, -DAY_S, 400 * DAY_S, -400 * DAY_S])
def test_a_jump_of_the_clock_does_no_harm(open_state, clocks, jump):
    running = open_state()
    running.hold(mark(3600))
    running.database.flush()
    assert remaining(running, clocks) == 3600
    clocks.wall_now += jump
    assert remaining(running, clocks) == pytest.approx(3600, abs=0.01)  # the process that runs keeps its own time
    later = open_state()
    assert remaining(later, clocks) is None or remaining(later, clocks) <= 0  # another is not shut out
    later.hold(mark(60))
    later.database.flush()
    assert remaining(open_state(), clocks) == pytest.approx(60, abs=0.01)  # nor does the old row stand in its way


@pytest.mark.parametrize("jump", [2 * DAY_S, -DAY_S])
def test_a_process_keeps_its_own_time_when_the_clock_jumps_before_it_reads_back(open_state, clocks, jump):
    running = open_state()
    running.hold(mark(3600))
    running.open_breaker("openai", "gpt", 300, "timeout")
    running.database.flush()
    clocks.wall_now += jump
    assert remaining(running, clocks) == pytest.approx(3600, abs=0.01)
    assert running.snapshot().breakers["openai", "gpt"].seconds == 300


@pytest.mark.parametrize("jump", [DAY_S, -DAY_S])
def test_a_process_keeps_its_own_time_when_it_has_to_read_again(open_state, clocks, jump):
    running = open_state()
    running.hold(mark(3600))
    running.database.flush()
    assert remaining(running, clocks) == 3600
    clocks.wall_now += jump
    later = open_state()
    later.hold(mark(60, place=("openai", "key:b", "gpt")))
    later.database.flush()
    assert remaining(running, clocks) == pytest.approx(3600, abs=0.01)


def test_no_row_holds_longer_than_a_day(open_state, clocks, tmp_path):
    state = open_state()
    state.hold(mark())
    assert state.database.flush()
    connection = sqlite3.connect(tmp_path / "state.db")
    with connection:
        connection.execute(
            "INSERT OR REPLACE INTO marks VALUES (?, ?, ?, ?, ?, 'x', '', 1)",
            (*PLACE, clocks.wall_now + 99 * DAY_S, clocks.wall_now),
        )
    connection.close()
    assert remaining(open_state(), clocks) == DAY_S


def test_rows_of_the_wrong_type_are_ignored(open_state, clocks, tmp_path):
    state = open_state()
    state.snapshot()
    connection = sqlite3.connect(tmp_path / "state.db")
    with connection:
        connection.execute("INSERT INTO marks VALUES ('a', 'b', 'c', 'soon', 'now', NULL, NULL, 'many')")
        connection.execute(
            "INSERT INTO marks VALUES ('a', 'b', 'd', ?1 + 9, ?1, NULL, NULL, 'many')", (clocks.wall_now,)
        )
        connection.execute("INSERT INTO breakers VALUES ('a', 'b', ?1 + 9, ?1, 'long', NULL)", (clocks.wall_now,))
        connection.execute("INSERT INTO breakers VALUES ('a', 'c', NULL, NULL, 'long', NULL)")
    connection.close()
    snapshot = state.snapshot()
    assert set(snapshot.marks) == {("a", "b", "d")}
    assert set(snapshot.breakers) == {("a", "b")}


def test_breakers_and_learned_accounts_are_shared(open_state, clocks):
    one, other = open_state(), open_state()
    one.open_breaker("openai", "gpt", 15.0, "server_error")
    one.learn("openai", "aaa", "org-1")
    one.learn("openai", "aaa", "org-1")
    assert one.snapshot().breakers[("openai", "gpt")].until == clocks.now + 15
    one.database.flush()
    opened = other.snapshot().breakers[("openai", "gpt")]
    assert (opened.seconds, opened.reason) == (15.0, "server_error")
    assert opened.until == pytest.approx(clocks.now + 15, abs=0.01)
    assert other.snapshot().learned == {("openai", "aaa"): "org-1"}
    other.close_breaker("openai", "gpt")
    assert other.snapshot().breakers == {}
    other.database.flush()
    assert one.snapshot().breakers == {}


def test_own_knowledge_and_that_of_the_disk_are_joined(open_state, clocks):
    one, other = open_state(), open_state()
    other.open_breaker("openai", "gpt", 300.0, "overloaded")
    other.hold(mark(500))
    other.database.flush()
    one.snapshot()
    one.open_breaker("openai", "gpt", 15.0, "server_error")
    one.hold(mark(60))
    assert one.snapshot().breakers[("openai", "gpt")].until == pytest.approx(clocks.now + 300, abs=0.01)
    assert remaining(one, clocks) == pytest.approx(500, abs=0.01)


def test_forget_frees_one_provider(open_state, clocks):
    state = open_state()
    state.hold(mark())
    state.hold(mark(place=("openai", "key:b", "gpt")))
    state.open_breaker("anthropic", "sonnet", 15.0, "x")
    state.open_breaker("openai", "gpt", 15.0, "x")
    state.forget("anthropic")
    for seen in (state, open_state()):
        state.database.flush()
        assert set(seen.snapshot().marks) == {("openai", "key:b", "gpt")}
        assert set(seen.snapshot().breakers) == {("openai", "gpt")}


def test_what_a_person_mended_is_free_in_every_process(open_state, clocks):
    running, command = open_state(), open_state()
    kept = ("anthropic", "key:b", "*")
    running.hold(mark())
    running.hold(mark(place=kept))
    running.database.flush()
    assert command.held_providers() == {"anthropic"}
    assert command.release(PLACE)
    assert not command.release(("anthropic", "key:c", "*"))
    command.database.flush()
    assert set(running.snapshot().marks) == set(command.snapshot().marks) == {kept}
    command.forget("anthropic")
    command.database.flush()
    assert running.held_providers() == command.held_providers() == frozenset()


def test_a_rest_that_is_over_is_none(open_state, clocks):
    state = open_state()
    state.hold(mark(10))
    state.open_breaker("openai", "gpt", 15.0, "x")
    clocks.pass_time(12)
    assert state.held_providers() == {"openai"}
    assert not state.release(PLACE)


def test_without_a_file_it_holds_in_memory(open_state, clocks):
    state = open_state(path=None)
    state.hold(mark(60))
    state.learn("p", "f", "a")
    assert remaining(state, clocks) == 60
    assert state.snapshot().learned == {("p", "f"): "a"}
    assert state.database.take_notices() == []


def damage_the_header(path):
    path.write_bytes(b"this is not a database" * 100)


def damage_a_page(path):
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.executemany(
            "INSERT INTO marks VALUES (?, 's', 'm', 1.0, 1.0, ?, '', 1)", [(f"p{n}", "r" * 200) for n in range(300)]
        )
    connection.close()
    with path.open("r+b") as file:
        size = path.stat().st_size
        for page in range(4096, size, 4096):
            file.seek(page)
            file.write(os.urandom(2048))


@pytest.mark.parametrize("damage", [damage_the_header, damage_a_page])
def test_a_damaged_file_is_set_aside_and_work_goes_on(open_state, clocks, tmp_path, damage):
    first = open_state()
    first.hold(mark())
    first.database.close()
    damage(tmp_path / "state.db")
    state = open_state()
    state.snapshot()
    state.hold(mark(70))
    assert state.database.flush()
    assert remaining(state, clocks) == pytest.approx(70, abs=0.01)
    assert remaining(open_state(), clocks) == pytest.approx(70, abs=0.01)
    (notice,) = state.database.take_notices()
    assert "damaged" in notice
    assert len(list(tmp_path.glob("state.db.damaged-*"))) >= 1
    assert state.database.take_notices() == []


def test_a_file_damaged_while_it_is_open_is_set_aside(open_state, clocks, tmp_path):
    state = open_state()
    state.hold(mark(50))
    state.database.flush()
    state.snapshot()
    for end in ("-wal", "-shm"):
        (tmp_path / f"state.db{end}").unlink(missing_ok=True)
    damage_the_header(tmp_path / "state.db")
    state.hold(mark(80))
    assert state.database.flush()
    assert remaining(state, clocks) == pytest.approx(80, abs=0.01)
    late = open_state()
    late.hold(mark(90))
    assert late.database.flush()
    assert remaining(late, clocks) == pytest.approx(90, abs=0.01)


def test_a_removed_file_is_made_anew(open_state, clocks, tmp_path):
    state = open_state()
    state.hold(mark(50))
    state.database.flush()
    for path in tmp_path.glob("state.db*"):
        path.unlink()
    state.hold(mark(60, place=("openai", "key:b", "gpt")))
    assert state.database.flush()
    assert ("openai", "key:b", "gpt") in open_state().snapshot().marks


def test_where_nothing_can_be_written_memory_carries_on_with_one_notice(open_state, clocks, tmp_path):
    (tmp_path / "file").touch()
    state = open_state(path=tmp_path / "file" / "state.db")
    state.hold(mark(60))
    state.database.flush()
    state.hold(mark(60, place=("openai", "key:b", "gpt")))
    state.database.flush()
    assert remaining(state, clocks) == 60
    assert remaining(state, clocks, ("openai", "key:b", "gpt")) == 60
    (notice,) = state.database.take_notices()
    assert "cannot use its state file" in notice


@pytest.mark.parametrize("there", [True, False])
def test_a_symlink_is_not_followed(open_state, clocks, tmp_path, there):
    (tmp_path / "state.db").symlink_to(tmp_path / "elsewhere.db")
    if there:
        (tmp_path / "elsewhere.db").touch(0o644)
    state = open_state()
    state.hold(mark(60))
    state.database.flush()
    assert remaining(state, clocks) == 60
    assert len(state.database.take_notices()) == 1
    assert not there or (tmp_path / "elsewhere.db").read_bytes() == b""


def test_a_locked_file_delays_neither_reads_nor_the_caller(open_state, clocks, tmp_path):
    state = open_state()
    state.hold(mark(60))
    state.database.flush()
    blocker = sqlite3.connect(tmp_path / "state.db", isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    begun = time.perf_counter()
    for n in range(20):
        state.hold(mark(60, place=("openai", f"key:{n}", "gpt")))
        assert remaining(state, clocks, ("openai", f"key:{n}", "gpt")) == 60
    assert time.perf_counter() - begun < 0.5
    assert not state.database.flush(timeout_s=0.05)
    blocker.execute("COMMIT")
    blocker.close()
    assert state.database.flush()
    assert len(open_state().snapshot().marks) == 21


def test_a_value_that_cannot_be_stored_loses_only_itself(open_state, clocks):
    state = open_state()
    state.learn("p", "f", "\ud800")
    state.hold(mark(60))
    assert state.database.flush()
    assert remaining(open_state(), clocks) == pytest.approx(60, abs=0.01)


def test_a_closed_database_takes_and_gives_nothing(open_state, clocks):
    state = open_state()
    state.database.close()
    state.hold(mark(60))
    assert state.database.flush()
    assert remaining(state, clocks) == 60
    assert state.database.read("SELECT 1") is None
