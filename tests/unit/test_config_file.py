"""The file is read only if nobody else can have written it or can read it."""

from __future__ import annotations

import os
import shlex
import socket

import pytest

from lyma_server.config.edit import add_key, set_value
from lyma_server.config.file import LARGEST_FILE, parse, read_text
from lyma_server.config.load import load_settings
from lyma_server.config.paths import Home
from lyma_server.errors import ConfigError
from lyma_server.secret import Secret

TEXT = "[router]\ndeadline_s = 7\n"


@pytest.fixture
def home(tmp_path) -> Home:
    (tmp_path / "config.toml").write_text(TEXT)
    (tmp_path / "config.toml").chmod(0o600)
    return Home(tmp_path)


def refusal(home: Home) -> str:
    """The refusal to read, which is also the refusal to write, and leaves everything as it was."""
    before = os.lstat(home.config)
    with pytest.raises(ConfigError) as reading:
        load_settings({}, home)
    for change in (
        lambda: set_value(home, "router.deadline_s", "8"),
        lambda: add_key(home, "openai", Secret("sk-proj-0123456789")),
    ):
        with pytest.raises(ConfigError) as writing:
            change()
        assert writing.value.message == reading.value.message
    assert os.lstat(home.config) == before
    assert os.listdir(home.root) == ["config.toml"]
    assert reading.value.data["file"] == str(home.config)
    return reading.value.message


def test_a_file_of_ones_own_is_read(home):
    assert load_settings({}, home).settings.router.deadline_s == 7


def test_no_file_is_no_error(tmp_path):
    assert read_text(tmp_path / "config.toml") is None


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o602, 0o610, 0o601, 0o644, 0o777])
def test_a_file_that_others_may_touch_is_refused(home, mode):
    home.config.chmod(mode)
    remedy = f"chmod 600 {shlex.quote(str(home.config))}"
    assert refusal(home) == f"{home.config} can be read or changed by others; run: {remedy}."


def test_the_remedy_quotes_the_path(tmp_path):
    home = Home(tmp_path / "my $HOME; rm")
    home.root.mkdir()
    home.config.write_text("")
    home.config.chmod(0o644)
    assert refusal(home).endswith(f"run: chmod 600 '{home.config}'.")


def test_a_symbolic_link_is_refused_though_its_target_is_fine(home):
    target = home.root.parent / "real.toml"
    home.config.rename(target)
    home.config.symlink_to(target)
    assert "is a symbolic link" in refusal(home)
    assert target.read_text() == TEXT


def test_a_dangling_link_is_refused_too(home):
    home.config.unlink()
    home.config.symlink_to(home.root / "nothing")
    assert "is a symbolic link" in refusal(home)


def test_a_fifo_is_refused_without_waiting_for_its_writer(home):
    home.config.unlink()
    os.mkfifo(home.config, 0o600)
    assert refusal(home) == f"{home.config} is not a regular file."


def test_a_folder_is_refused(home):
    home.config.unlink()
    home.config.mkdir(0o700)
    assert refusal(home) == f"{home.config} is not a regular file."


def test_a_socket_is_refused(home, monkeypatch):
    home.config.unlink()
    monkeypatch.chdir(home.root)  # the path of a socket must be short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("config.toml")
        assert "cannot be opened" in refusal(home)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: only root can give a file away")
def test_a_file_of_another_user_is_refused(home):
    os.chown(home.config, 12345, 12345)
    remedy = f"chown {os.geteuid()} {shlex.quote(str(home.config))}"
    assert refusal(home) == f"{home.config} belongs to another user; run: {remedy}."


@pytest.mark.skipif(os.geteuid() == 0, reason="needs a plain user: root may open everything")
def test_a_file_that_its_owner_may_not_read_is_refused(home):
    home.config.chmod(0)
    assert "cannot be opened (Permission denied)" in refusal(home)


def test_a_huge_file_is_refused(home):
    with home.config.open("wb") as file:
        file.truncate(LARGEST_FILE + 1)
    assert "is larger than" in refusal(home)


def test_bytes_that_are_not_utf8_are_named_by_their_line(home):
    home.config.write_bytes(b"# one\n# two\nmodel = '\xff'\n")
    assert refusal(home) == f"{home.config}, line 3: not UTF-8; save the file as UTF-8."


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a = ", 1),
        ("a = 1\nb = [\n1,\n", 4),
        ("a = 1\na = 2\n", 2),
        ("[x]\n[x]\n", 2),
        ("a = 9" + "9" * 5000, 1),
        ("a = " + "[" * 3000, 1),
        ("order = ['sk-proj-secretsecret]\nmodel = 'x'\n", 1),
        ('[providers.openai]\nkeys = ["sk-proj-secretsecret" "b"]\n', 2),
        ("x = { sk-proj-secretsecret = 1, sk-proj-secretsecret = 2 }\n", 1),
        ('[providers.openai]\n"sk-proj-secretsecret" = 1\n"sk-proj-secretsecret" = 2', 3),
    ],
)
def test_what_is_not_toml_is_named_by_its_line_and_not_shown(home, text, line):
    with pytest.raises(ConfigError) as caught:
        parse(home.config, text)
    error = caught.value
    assert error.message.startswith(f"{home.config}, line ")
    assert error.message.endswith("; the file must be valid TOML.")
    assert "secret" not in error.message
    assert error.data | {"line": line} == error.data
    assert "(,)" not in error.message
    assert error.__context__ is None or "secret" not in str(error.__context__)


@pytest.mark.parametrize(("text", "what"), [("ab = 1\nab = 2\n", "setting"), ("[budget]\n[budget]\n", "table")])
def test_what_stands_twice_is_said_plainly(home, text, what):
    with pytest.raises(ConfigError, match=f", line 2: A {what} stands twice; the file must be valid TOML"):
        parse(home.config, text)
