"""The agent's own tools for commands, in whole turns with a scripted model and real commands."""

from __future__ import annotations

import asyncio
import json

import pytest

from lyma_server.agent.agent import Agent
from lyma_server.config.model import AgentSettings
from lyma_server.errors import MaskUnavailable
from lyma_server.executor import ground
from lyma_server.executor.sessions import CommandSessions
from lyma_server.isolation import kernel, probe
from lyma_server.protocol.events import ItemDelta, Notice
from lyma_server.protocol.items import CommandOutputItem, ToolResultItem
from lyma_server.router.chat import ToolCall
from tests.command_sessions import UNSEEN, commands_in, hide_words, throwaway_home
from tests.fakes import KEY, Desk, FakeWorkspace, answer

pytestmark = [
    pytest.mark.skipif(not kernel.has_exec_notification(), reason="this kernel cannot ask about system calls"),
    pytest.mark.skipif(not probe.find_bwraps(), reason="bubblewrap is not here"),
]


def call(name: str, **arguments) -> list:
    return answer(ToolCall(f"call-{name}-{len(arguments)}", name, arguments, json.dumps(arguments)))


class CommandDesk(Desk):
    """A desk in a throwaway home, whose agent may run commands."""

    def __init__(self, home, *scripts, settings=None, says=True, **manner) -> None:
        super().__init__(home, *scripts, settings=settings, says=says)
        self.workspace = FakeWorkspace(home / "work")
        self.commands = CommandSessions(lambda root: commands_in(root.parent, **manner))
        self.agent = Agent(
            self.router, self.sessions, settings or AgentSettings(), self.redactor, home / ".lyma", self.commands
        )

    @property
    def told(self) -> list[tuple[bool, str]]:
        return [(item.is_error, item.text) for item in self.completed(ToolResultItem)]


@pytest.fixture
def home():
    with throwaway_home() as folder:
        yield folder


@pytest.fixture
async def desk(home):
    made = []

    def make(*scripts, **options) -> CommandDesk:
        made.append(CommandDesk(home, *scripts, answer("done"), **options))
        return made[-1]

    yield make
    for each in made:
        await each.commands.close()


async def test_a_command_is_run_shown_and_told(desk):
    ask = desk(call("run_command", command="echo hello; exit 4"))
    await ask.ask()
    assert ask.told == [(False, "exit status 4\nhello\n")]
    (shown,) = ask.completed(CommandOutputItem)
    assert (shown.command, shown.text, shown.exit_status) == ("echo hello; exit 4", "hello\n", 4)
    assert [body.text for body in ask.ears.bodies if isinstance(body, ItemDelta) and body.item == shown.id] == [
        "hello\n"
    ]


async def test_the_model_is_offered_commands_only_where_they_run(desk, home):
    ask = desk()
    await ask.ask()
    assert {"run_command", "list_commands", "stop_command"} <= {tool.name for tool in ask.router.requests[0].tools}
    bare = Desk(home, answer("done"))
    await bare.ask()
    assert "run_command" not in {tool.name for tool in bare.router.requests[0].tools}
    lost = desk()
    lost.workspace = FakeWorkspace(home.parent.parent / "home")
    lost.agent.home = home
    await lost.ask()
    assert lost.router.requests[0].tools == ()


async def test_a_forbidden_command_tells_the_model_what_to_do_instead(desk, home):
    ask = desk(call("run_command", command=f"touch ran; rm -rf {home}"), settings=AgentSettings(confirm="all"))
    await ask.ask()
    ((is_error, text),) = ask.told
    assert is_error
    for part in ("forbidden", "fs-wipe", str(home), "Name the subfolder"):
        assert part in text
    assert ask.person.questions == [], "nobody is asked about what cannot be allowed"
    assert not (home / "work/ran").exists()
    assert ask.completed(CommandOutputItem) == []


async def test_what_the_guard_refuses_is_told_with_its_rule(desk, home):
    hide_words(home, "rm", "-rf", str(home))
    ask = desk(call("run_command", command=UNSEEN))
    await ask.ask()
    ((_, text),) = ask.told
    assert "Refused as it was to be executed (fs-wipe)" in text
    assert "Name the subfolder" in text


@pytest.mark.parametrize(("says", "told"), [(False, "did not agree"), (None, "Nobody answered")])
async def test_without_a_yes_nothing_runs(desk, home, says, told):
    ask = desk(call("run_command", command="touch ran"), settings=AgentSettings(confirm="commands"), says=says)
    await ask.ask()
    assert [question.about for question in ask.person.questions] == ["command"]
    assert ask.told[0][0]
    assert told in ask.told[0][1]
    assert not (home / "work/ran").exists()


async def test_with_a_yes_it_runs(desk, home):
    ask = desk(call("run_command", command="touch ran"), settings=AgentSettings(confirm="commands"))
    await ask.ask()
    assert ask.person.questions[0].text == "touch ran"
    assert (home / "work/ran").exists()


async def test_edits_alone_ask_about_no_command(desk, home):
    ask = desk(call("run_command", command="touch ran"), settings=AgentSettings(confirm="edits"))
    await ask.ask()
    assert ask.person.questions == []
    assert (home / "work/ran").exists()


async def test_a_secret_is_in_no_event_and_not_in_what_the_model_is_told(desk):
    ask = desk(call("run_command", command=f"printf '%s' {KEY[:8]}; sleep 0.1; echo {KEY[8:]}"))
    await ask.ask()
    (shown,) = ask.completed(CommandOutputItem)
    assert shown.text == "[redacted]\n"
    assert ask.told[0][1] == "exit status 0\n[redacted]\n"
    assert KEY not in "".join(body.text for body in ask.ears.bodies if isinstance(body, ItemDelta))


async def test_a_background_command_outlives_its_turn_and_ends_when_asked(desk):
    ask = desk(
        call("run_command", command="echo up; sleep 987.2", background=True),
        answer("first"),
        call("list_commands"),
        call("stop_command", command=1),
        call("list_commands", command=1),
    )
    first = await ask.ask()
    assert ask.told[0] == (False, "Command 1 runs in the background until it is stopped or the session ends.\nup\n")
    (shown,) = ask.completed(CommandOutputItem)
    assert (shown.text, shown.exit_status) == ("up\n", None)
    await ask.ask(session=first.session)
    assert "command 1: echo up; sleep 987.2\nruns; started" in ask.told[1][1]
    assert ask.told[2] == (False, "Command 1 has ended with all that it started.")
    assert "ended with status 143" in ask.told[3][1]


async def test_a_timeout_is_an_error_that_holds_the_output(desk):
    ask = desk(call("run_command", command="echo begun; sleep 987.3", timeout_s=1))
    await ask.ask()
    ((is_error, text),) = ask.told
    assert is_error
    assert "ran too long" in text
    assert "begun" in text


async def test_a_cancelled_turn_ends_its_command(desk):
    ask = desk(call("run_command", command="echo begun; sleep 987.4"))
    turn = ask.start()
    async with asyncio.timeout(10):
        while not any(isinstance(body, ItemDelta) for body in ask.ears.bodies):
            await asyncio.sleep(0.01)
    began = asyncio.get_running_loop().time()
    turn.cancel()
    result = await turn.result()
    assert asyncio.get_running_loop().time() - began < 2
    assert result.stop_reason == "cancelled"
    (shown,) = ask.completed(CommandOutputItem)
    assert shown.text == "begun\n"


async def test_where_nothing_can_be_confined_the_model_and_the_person_are_told(desk, home, monkeypatch):
    async def unproven(*_):
        raise MaskUnavailable("No mask: run `sudo apt install bubblewrap`.", remedy="install it")

    monkeypatch.setattr(ground, "prove_mask", unproven)
    ask = desk(call("run_command", command="touch ran"))
    await ask.ask()
    assert ask.told == [(True, "No mask: run `sudo apt install bubblewrap`.")]
    assert [body.text for body in ask.ears.bodies if isinstance(body, Notice)] == [
        "No mask: run `sudo apt install bubblewrap`."
    ]
    assert not (home / "work/ran").exists()


async def test_a_refused_write_explains_the_setting(desk, home):
    ask = desk(call("run_command", command=f"echo x > {home}/outside"))
    await ask.ask()
    assert "executor.writable" in ask.told[0][1]
    assert not (home / "outside").exists()


async def test_sessions_do_not_share_their_commands(desk):
    ask = desk(call("run_command", command="echo x > /tmp/mine; sleep 987.5 &"), answer("done"), call("list_commands"))
    await ask.ask()
    await ask.ask()
    assert ask.told[1] == (False, "No command runs in the background.")


NESTED = "git init -q sub && git -C sub config alias.x '!touch y'"


async def test_a_program_that_git_would_run_later_is_reported(desk, home):
    for command in ("git init -q . && git config alias.x '!touch y' && git config pull.rebase true", NESTED):
        ask = desk(call("run_command", command=command))
        await ask.ask()
        told = [body.text for body in ask.ears.bodies if isinstance(body, Notice)]
        where = "sub/.git/config" if command == NESTED else ".git/config"
        assert told == [f"The command made git run a program from now on: alias.x = !touch y (in {where})."]
