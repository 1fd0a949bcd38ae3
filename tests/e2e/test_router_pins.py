"""Whom nothing may be sent to: pinned folders and providers that are down, through the real `lyma`."""

from __future__ import annotations

import pytest

from tests.lyma import environment, run_lyma
from tests.stub_provider import StubProvider, fail, refusing_url, say

KEY = "sk-pinned-0123456789abcdefghij"


@pytest.fixture
def other():
    """A provider that would answer, and must not be asked."""
    with StubProvider([say("leaked")]) as stub:
        yield stub


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "work" / "deep"
    folder.mkdir(parents=True)
    (folder / "secret.txt").write_text("private\n")
    return folder


def write_config(tmp_path, text):
    config = tmp_path / "config.toml"
    config.write_text(text)
    config.chmod(0o600)


def ask(tmp_path, folder, *arguments):
    env = environment(LYMA_HOME=str(tmp_path))
    return run_lyma("ask", *arguments, "what is in @secret.txt?", env=env, cwd=folder)


def configure(tmp_path, pinned, other, folders=""):
    write_config(
        tmp_path,
        f"""
order = ["other", "pinned"]
[providers.other]
base_url = "{other}"
model = "m"
[providers.pinned]
base_url = "{pinned}"
model = "m"
keys = ["{KEY}"]
{folders}
""",
    )


def pin(path):
    return f'[[folders]]\npath = "{path}"\norder = ["pinned"]\n'


@pytest.mark.parametrize("way", ["refused", "limited", "hung up on"])
@pytest.mark.parametrize("pinned_by", ["folder", "flag", "link"])
def test_a_pin_that_is_down_is_a_clear_failure_and_nothing_goes_elsewhere(tmp_path, folder, other, pinned_by, way):
    replies = {"limited": fail(429, headers={"retry-after": "10800"}), "hung up on": fail(500)}
    with StubProvider([replies.get(way, say("never"))]) as stub:
        url = refusing_url() if way == "refused" else stub.openai_url
        where = folder
        if pinned_by == "link":
            where = tmp_path / "link"
            where.symlink_to(folder)
        configure(tmp_path, url, other.openai_url, "" if pinned_by == "flag" else pin(folder.parent))
        arguments = ("--provider", "pinned") if pinned_by == "flag" else ()
        result = ask(tmp_path, where, *arguments)
    assert (result.returncode, result.stdout) == (4, "")
    said = {"refused": "could not be reached", "limited": "limiting the rate of requests, next try in 3 h"}
    assert said.get(way, "had an internal error") in result.stderr.splitlines()[-1]
    assert "pinned" in result.stderr
    assert other.connections == 0


@pytest.mark.parametrize("flag", ["--provider", "--prefer"])
def test_no_flag_leads_out_of_a_pinned_folder(tmp_path, folder, other, flag):
    configure(tmp_path, refusing_url(), other.openai_url, pin(folder))
    result = ask(tmp_path, folder, flag, "other")
    assert result.stdout == ""
    assert result.returncode == (2 if flag == "--provider" else 4)
    if flag == "--provider":
        assert f"The folder {folder} is pinned to pinned, so nothing from it is sent to other." in result.stderr
    assert other.connections == 0


def test_a_pin_to_nobody_who_is_configured_is_refused(tmp_path, folder, other):
    configure(tmp_path, refusing_url(), other.openai_url, pin(folder).replace('["pinned"]', '["elsewhere"]'))
    result = ask(tmp_path, folder)
    assert (result.returncode, result.stdout) == (1, "")
    assert "folders (item 1) names a provider that is neither known nor configured" in result.stderr
    assert other.connections == 0


def test_outside_the_pinned_folder_everybody_may_be_asked(tmp_path, folder, other):
    configure(tmp_path, refusing_url(), other.openai_url, pin(folder))
    beside = tmp_path / "work"
    (beside / "secret.txt").write_text("not private\n")
    assert ask(tmp_path, beside).stdout == "leaked\n"


def test_a_preference_that_is_down_is_followed_by_the_others(tmp_path, folder, other):
    configure(tmp_path, refusing_url(), other.openai_url)
    result = ask(tmp_path, folder, "--prefer", "pinned")
    assert result.stdout == "leaked\n"
    assert "pinned" in result.stderr
