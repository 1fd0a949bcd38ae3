"""The short list: what the agent can never do. There is no setting, flag or variable for it, and no parameter to pass.

A row is a rule's name, what is wrong, what to do instead, and a matcher. To read the list is to read this file.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from attrs import frozen

from lyma_server.executor.effects import find_effects
from lyma_server.executor.invocation import program_name
from lyma_server.executor.marks import FIRST, is_known, show
from lyma_server.executor.rules import access, files, machine, remote
from lyma_server.executor.rules.base import Case, Matcher
from lyma_server.executor.tools import DESTRUCTIVE, SENDERS

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from lyma_server.executor.effects import Kind
    from lyma_server.executor.invocation import Invocation
    from lyma_server.executor.places import Places


@frozen
class Rule:
    """`reason` completes "It ..."; `instead` is a whole sentence.

    The matcher is asked about `programs` (null for every one), and about whatever has one of these `effects` on files.
    """

    name: str
    reason: str
    instead: str
    matcher: Matcher
    programs: Container[str] | None = None
    effects: Sequence[Kind] = ()


@frozen
class Finding:
    """A rule with the part of the command that it names."""

    rule: Rule
    part: str


NONE: frozenset[str] = frozenset()

_NARROW = "Name the subfolder that you mean; everything inside the workspace, /tmp and caches may be removed."
_DISK = "Work on an image file, or let the person run it."
_PERSON = "Ask the person to do it."


def disguised_name(case: Case) -> str | None:
    """A command word with letters that look like others."""
    word = case.invocation.argv[0] if case.invocation.argv else ""
    return None if word.isascii() or not any("\x7f" < character < FIRST for character in word) else show(word)


RULES: tuple[Rule, ...] = (
    Rule("characters", "starts a program whose name is not plain ASCII", "Write the program's name in ASCII.", disguised_name),
    Rule("fs-wipe", "removes a tree that a machine or a person lives in", _NARROW, files.removes_tree, NONE, ("remove tree",)),
    Rule("fs-wipe", "removes or overwrites every file of a protected folder, or a key", _NARROW, files.removes_all_files, NONE, ("remove", "write")),
    Rule("fs-wipe", "moves away what a machine or a person lives in", _NARROW, files.moves_away, NONE, ("move",)),
    Rule("device", "writes to a disk or to memory", _DISK, machine.writes_device),
    Rule("fs-wipe", "empties a file without which the machine does not start", _PERSON, files.breaks_start, NONE, ("remove", "remove tree", "move", "write")),
    Rule("device", "erases or repartitions a disk", _DISK, machine.destroys_device, machine.DEVICE_COMMANDS),
    Rule("perm", "changes owner, mode or access of a whole protected tree", "Name the files that need it.", files.changes_tree_modes, NONE, ("mode tree",)),
    Rule("perm", "locks everyone out, or lets everyone in", "Give the least that is needed, to the file that needs it.", files.opens_or_locks, files.MODES),
    Rule("perm", "gives a tool the rights of root", "Run the one command that needs root with sudo.", files.sets_user_id, files.MODES),
    Rule("system", "ends or restarts the machine", _PERSON, machine.ends_machine, machine.POWER_COMMANDS),
    Rule("system", "signals init or every process", "Signal the processes that you started, by number.", machine.kills_everything, machine.KILLERS),
    Rule("system", "uses the kernel's emergency keys", _PERSON, machine.magic_key, NONE, access.WRITES),
    Rule("system", "switches off a firewall, audit or access control", _PERSON, machine.lowers_guard, machine.GUARD_COMMANDS, access.WRITES),
    Rule("system", "drops a whole crontab", "List it, change the line that you mean, and load it again.", machine.drops_crontab, ("crontab",)),
    Rule("forkbomb", "starts processes without end", "Bound the number of processes, and wait for them.", machine.is_fork_bomb),
    Rule("pipe-exec", "runs text that nobody has read", "Download it to a file, read it, then run it.", access.runs_unseen_text),
    Rule("persistence", "changes who may log in, or what runs by itself as the system", _PERSON, access.opens_door, NONE, (*access.WRITES, "fill")),
    Rule("persistence", "makes a user with the rights of root, or sets a password", _PERSON, access.changes_accounts, access.ACCOUNT_COMMANDS),
    Rule("revshell", "hands a shell to another machine", "Run the command here and send its output.", access.opens_shell),
    Rule("secrets", "reads keys, password hashes or another process", "Use the program that needs the key; it reads it itself.", access.reads_secret, access.SHOWING, ("read", "move")),
    Rule("secrets", "sends the environment or credentials to the network", "Send the one value that is meant.", access.sends_secret, SENDERS),
    Rule("self", "gives a command of Lyma that only a person may give", _PERSON, access.approves_itself),
    Rule("self", "changes Lyma's home or its code", _PERSON, access.changes_lyma, access.INSTALLERS, access.CHANGES),
    Rule("self", "ends Lyma itself", "Stop a command of yours by its number.", access.kills_lyma, access.KILLERS_BY_NAME),
    Rule("self", "ends Lyma itself", "Stop a command of yours by its number.", machine.kills_lyma_process, machine.KILLERS),
    Rule("history", "removes shell history or system logs", "Name the log of your own program.", access.covers_tracks, NONE, ("write", "remove", "remove tree", "move")),
    Rule("history", "empties the journal or the history", "Filter what you read instead.", access.clears_records, access.TRACK_COMMANDS),
    Rule("remote-destroy", "deletes infrastructure or cloud resources", _PERSON, remote.destroys_remote, remote.REMOTE_COMMANDS),
    Rule("remote-destroy", "empties a whole bucket", "Name the prefix that you mean.", remote.empties_bucket, remote.BUCKET_TOOLS),
    Rule("remote-destroy", "drops or empties a database elsewhere", "Work on a local copy, or ask the person.", remote.destroys_remote_database, remote.CLIENTS),
    Rule("remote-destroy", "resets the database of production", "Use the development environment.", remote.resets_production),
    Rule("remote-destroy", "removes the volumes of every project", "Name the volume, or use `docker compose down -v`.", remote.prunes_volumes, remote.ENGINES),
    Rule("remote-destroy", "deletes through the control plane of a cloud", _PERSON, remote.deletes_by_request, remote.REQUESTERS),
)  # fmt: skip


def judge_invocation(invocation: Invocation, places: Places, *, reads: bool = True) -> Finding | None:
    """The first rule that names what `invocation` would do. A program of unknown name is judged as every destructive one.

    Without `reads` it is known already that no argument of an ordinary program names a secret.
    """
    for candidate in _readings(invocation):
        finding = find_rule(Case(candidate, find_effects(candidate, reads=reads), places))
        if finding is not None:
            return finding
    return None


def find_rule(case: Case) -> Finding | None:
    """The first rule that speaks of `case`."""
    for rule in rules_about(case.program, frozenset([effect.kind for effect in case.effects])):
        part = rule.matcher(case)
        if part is not None:
            return Finding(rule, part)
    return None


@lru_cache(maxsize=1024)
def rules_about(program: str, effects: frozenset[Kind]) -> tuple[Rule, ...]:
    """Those whose matcher may speak of `program` with such `effects`. A verdict at execve has no time for the others."""
    return tuple(
        rule
        for rule in RULES
        if rule.programs is None or program in rule.programs or not effects.isdisjoint(rule.effects)
    )


def _readings(invocation: Invocation) -> tuple[Invocation, ...]:
    if not invocation.argv or is_known(program_name(invocation.argv[0])):
        return (invocation,)
    rest = invocation.argv[1:]
    return (invocation, *(invocation._replace(program=tool, argv=(tool, *rest)) for tool in DESTRUCTIVE))
