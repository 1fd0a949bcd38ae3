"""Every mistake is named with its file, line, setting and what was expected, all at once, and no value is shown."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from lyma_server.config.load import load_settings
from lyma_server.config.paths import Home
from lyma_server.errors import ConfigError

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "broken_configs.json"
CASES = json.loads(GOLDEN.read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_broken_configuration_is_explained(tmp_path, case):
    home = Home(tmp_path)
    home.config.write_text(case["text"], encoding="utf-8")
    home.config.chmod(0o600)
    with pytest.raises(ConfigError) as caught:
        load_settings(case["environ"], home)
    error = caught.value
    lines = error.message.replace(str(home.config), "FILE").split("\n")
    assert lines == case["message"]
    assert error.data.get("line") == case["line"]
    assert error.data["key"] == case["key"]
    assert re.sub("^one of .*", "one of …", error.data["expected"]) == case["expected"]  # new settings come and go
    assert error.data.get("file") == (str(home.config) if lines[0].startswith("FILE") else None)
    assert [other.replace(str(home.config), "FILE") for other in error.data["others"]] == lines[1:]
    assert "secret" not in f"{error.message}{error.data}"


def test_the_cases_have_names_of_their_own():
    assert len({case["name"] for case in CASES}) == len(CASES) > 40


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(
    "above", ["", "# comment\n", 'order = [\n  "openai", # [\n]\n', 'x = """\n[agent]\n"""\n', "[router]\n\n\n"]
)
def test_the_line_is_right_whatever_stands_above(tmp_path, newline, above):
    home = Home(tmp_path)
    text = f"{above}[agent]\n\nmax_steps = false\n".replace("\n", newline)
    home.config.write_bytes(text.encode())
    home.config.chmod(0o600)
    with pytest.raises(ConfigError) as caught:
        load_settings({}, home)
    said = caught.value.message
    assert f"line {above.count(chr(10)) + 3}: agent.max_steps must be a whole number" in said
