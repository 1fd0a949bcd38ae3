"""A key is nowhere but in the configuration, in the memory of its process and in the header that goes to its provider.

Whatever a provider makes of the keys that it was given, whichever face is used and however the key was given: none is in
what is printed, sent, logged, kept or handed to a child. The last tests show that the same search finds it where
redaction is taken out, so that a search that looks in the wrong places is red.
"""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from tests.processes import Watch, find, wait_for
from tests.routing import FORMATS
from tests.security.canary import Canary, gives_away
from tests.security.echo import OWN_COMMAND, REFUSALS, SILENT
from tests.security.house import COMMAND, INLINE, LYMA, OPEN_LYMA, OPEN_SERVER, SERVER, VARIABLE, WAYS, House

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SLOW_S = 60
"""A model on a busy machine."""


def ask_in_a_terminal(house: House, command: Sequence[str] = LYMA) -> None:
    """Ask one that answers, in a pipe and on a screen; files and words with keys go along."""
    first, last = house.providers("said")[0], house.providers("said")[-1]
    prompt = f"My keys are {house.echo.told}. Review keys.txt."
    assert house.run("ask", "ask", "-", "--provider", first, stdin=prompt, command=command) == 0, house.stderr
    assert house.show("ask", "ask", "--provider", last, "--file", "keys.txt", "hi", command=command) == 0


def ask_everybody(house: House) -> None:
    """Ask all that refuse, one after the other, and in the end one that answers."""
    order = ",".join(house.providers(*REFUSALS, "said"))
    assert house.run("ask --json", "ask", "--json", "hi", LYMA_ORDER=order) == 0, house.stderr


def fail_in_a_terminal(house: House) -> None:
    """Nobody answers; and an answer is interrupted, and interrupted again."""
    (house.home / "state.db").unlink(missing_ok=True)
    order = ",".join(house.providers(*REFUSALS))
    assert house.run("failed", "ask", "hi", LYMA_ORDER=order) == 4, house.stderr
    for name in house.providers("broken"):
        assert house.run(name, "ask", "--provider", name, "hi") == 4, house.stderr


def report_in_a_terminal(house: House) -> None:
    """Every command that says how things stand."""
    assert house.run("status", "status") == 0, house.stderr
    assert house.run("status --json", "status", "--json") == 0, house.stderr
    assert house.run("models", "models") == 0, house.stderr
    assert house.run("doctor", "doctor") == 1, house.stderr
    assert house.run("config show", "config", "show") == 0, house.stderr
    assert house.run("config show --json", "config", "show", "--json") == 0, house.stderr
    assert house.run("keys list", "keys", "list") == 0, house.stderr


def misplace_a_key(house: House) -> None:
    """A key in the wrong place of the file, and one in the wrong place of a line that is no TOML."""
    config = house.home / "config.toml"
    text = config.read_text()
    for number, mistake in enumerate((f'order = "{INLINE.value}"', f"{INLINE.value} = 1", f'x = "{INLINE.value}" y')):
        config.write_text(mistake)
        assert house.run(f"mistake {number}", "status") == 1
    config.write_text(text)


def ask_in_an_editor(house: House, command: Sequence[str] = SERVER) -> None:
    """Ask everybody, ask each, stop one in the middle, and look at all there is to look at."""
    with house.serve(command) as client:
        prompt = f"My keys are {house.echo.told}."
        silent, said = house.providers(SILENT)[0], house.providers("said")[0]
        answers = [client.call("lyma/ask", {"prompt": prompt, "prefer": said})]
        asked = house.providers(*REFUSALS, "broken", "said")
        answers += [client.call("lyma/ask", {"prompt": prompt, "provider": name}) for name in asked]
        assert ["result" in answer for answer in answers] == [True, *("said" in name for name in asked)]
        start = len(client.messages)
        waiting = client.request("lyma/ask", {"prompt": "hi", "provider": silent})
        client.wait_for(lambda m: m.get("params", {}).get("type") == "item.delta", start=start)
        client.notify("$/cancelRequest", {"id": waiting})
        assert client.reply(waiting)["result"]["stopReason"] == "cancelled"
        session = answers[0]["result"]["session"]
        for method, params in (
            ("lyma/status", {}),
            ("lyma/models", {}),
            ("lyma/sessions", {"action": "list"}),
            ("lyma/sessions", {"action": "load", "session": session}),
            ("workspace/executeCommand", {"command": "lyma.status", "arguments": []}),
            (
                "workspace/executeCommand",
                {"command": "lyma.ask", "arguments": [{"prompt": prompt, "provider": said}]},
            ),
        ):
            assert "result" in client.call(method, params), client.messages[-1]
        assert "error" in client.call("lyma/ask", {"prompt": "hi", "provider": INLINE.value})
        house.heard(client)
        client.call("shutdown")
        client.notify("exit")
        client.wait()


def check(house: House) -> None:
    """Nothing leaks, and what was looked into is what there is to look into."""
    assert house.leaks() == []
    looked_at = " ".join(house.sinks)
    for name in (
        "file home/state.db-wal",
        "file home/sessions/",
        "file spied/",
        "request 1",
        "words of",
        "variables of",
    ):
        assert name in looked_at, looked_at
    assert {request.key for request in house.stub.requests} == {canary.value for canary in house.canaries}
    assert not (house.work / "stolen.txt").exists()
    bodies = b"".join(request.raw for request in house.stub.requests)
    assert b"which stands for a secret that you cannot see" in bodies  # the write was refused for the mark in it
    ran = any(given.words == OWN_COMMAND.replace(" ", "\0").encode() + b"\0" for given in house.watch.given)
    assert ran or b"so none runs" in bodies  # where a machine cannot confine commands


ALONE = [(api, way) for api in FORMATS for way in WAYS]


def test_a_key_is_seen_nowhere_in_the_terminal(tmp_path: Path) -> None:
    with House(tmp_path / "house") as house:
        ask_in_a_terminal(house)
        ask_everybody(house)
    check(house)


def test_a_key_is_seen_nowhere_in_the_editor(tmp_path: Path) -> None:
    with House(tmp_path / "house") as house:
        ask_in_an_editor(house)
    check(house)
    for place in ("home/transcripts/", "home/log/server.log"):
        assert any(place in name for name in house.sinks)


def test_a_key_is_seen_nowhere_in_what_reports_say(tmp_path: Path) -> None:
    with House(tmp_path / "house", ["openai"]) as house:
        report_in_a_terminal(house)
        misplace_a_key(house)
    assert house.leaks() == []


@pytest.mark.usefixtures("smollm_model")
def test_the_embedded_model_is_given_no_key(tmp_path: Path) -> None:
    with House(tmp_path / "house") as house, house.serve(order="said-openai,embedded") as client:
        asked = client.request("lyma/ask", {"prompt": "Say yes.", "provider": "embedded"})
        client.event("item.delta", SLOW_S)
        client.notify("$/cancelRequest", {"id": asked})
        client.reply(asked)
    assert house.leaks() == []
    for program in (b"llama_child.py", b"/bin/sh\0-c\0cat "):
        assert any(program in given.words for given in house.watch.given)


@pytest.mark.full
@pytest.mark.parametrize(("api", "way"), ALONE)
def test_each_way_in_each_format_alone(api: str, way: str, tmp_path: Path) -> None:
    with House(tmp_path / "house", [api], [way]) as house:
        ask_in_a_terminal(house)
        ask_everybody(house)
        fail_in_a_terminal(house)
        report_in_a_terminal(house)
        ask_in_an_editor(house)
    check(house)


# Controls: the search finds what is there to be found


def test_without_redaction_it_is_found_in_the_terminal(tmp_path: Path) -> None:
    with House(tmp_path / "house", ["openai"]) as house:
        ask_in_a_terminal(house, OPEN_LYMA)
    leaks = " ".join(house.leaks())
    searched = ("file spied/",) if shutil.which("rg") else ()  # the search is our own where there is no ripgrep
    for sink in ("ask: stdout", "ask: screen", "file home/sessions/", *searched, "request "):
        assert sink in leaks, leaks


def test_without_redaction_it_is_found_in_the_editor(tmp_path: Path) -> None:
    with House(tmp_path / "house", ["anthropic"]) as house:
        ask_in_an_editor(house, OPEN_SERVER)
    leaks = " ".join(house.leaks())
    for sink in ("server: wire", "file home/sessions/", "file home/transcripts/", "request "):
        assert sink in leaks, leaks


@pytest.mark.parametrize("canary", [INLINE, VARIABLE, COMMAND], ids=["vendor", "long prefix", "odd"])
def test_every_spelling_is_found(canary: Canary) -> None:
    for name, text in canary.spellings.items():
        assert gives_away(f"bla {text} bla".encode(), canary), name
    value = canary.value
    for text in (
        json.dumps(value),
        json.dumps(json.dumps({"key": value})),
        quote(json.dumps(value)),
        f"\x1b[2m{value}\x1b[0m",
    ):
        assert gives_away(text.encode(), canary), text
    for shift in range(3):
        surrounded = base64.b64encode(b"ab"[:shift] + value.encode() + b" and more").decode()
        assert gives_away(surrounded.encode(), canary), shift


@pytest.mark.parametrize("canary", [INLINE, VARIABLE, COMMAND], ids=["vendor", "long prefix", "odd"])
def test_what_gives_nothing_away_is_not_found(canary: Canary) -> None:
    for text in (
        f"…{canary.value[-4:]}",
        canary.prefix,
        "[redacted]",
        base64.b64encode(canary.prefix.encode()).decode(),
    ):
        assert not gives_away(text.encode(), canary), text
    assert not any(gives_away(other.value.encode(), canary) for other in WAYS.values() if other is not canary)


def test_what_a_child_is_given_is_seen(tmp_path: Path) -> None:
    script = "import os, subprocess; subprocess.run(['sleep', '0.1'], env={'KEY': os.environ['KEY']})"
    with Watch(tmp_path) as watch:
        (tmp_path / "for a moment").write_bytes(INLINE.value.encode())
        seen = subprocess.Popen([sys.executable, "-c", script], env={"KEY": VARIABLE.value})
        wait_for(lambda: find(seen.pid, b"sleep\x000.1") or seen.poll() is not None)
        seen.wait()
        (tmp_path / "for a moment").unlink()
    assert any(given.words == b"sleep\x000.1\x00" and gives_away(given.environment, VARIABLE) for given in watch.given)
    assert any(gives_away(content, INLINE) for content in watch.files[tmp_path / "for a moment"])
