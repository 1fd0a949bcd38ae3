"""What an editor tells of an agent.toml that is being written."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lyma_server.config import shape
from lyma_server.config.model import CeilingSettings
from lyma_server.editor.features.agent_file import lens_commands
from lyma_server.editor.features.agent_help import Beside, complete, hover, is_agent, symbols
from lyma_server.editor.features.agent_lines import lines_of
from lyma_server.factory.compile import Source, examine
from lyma_server.factory.spec import Spec
from lyma_server.factory.template import template

CEILING = CeilingSettings(max_turns=50)
TEMPLATE = template("todo-triage", CEILING)
HASH = "sha256:" + "3f9a12" + "0" * 58


def place(text: str) -> tuple[str, int, int]:
    """The text without its cursor `|`, and where that was."""
    before, _, after = text.partition("|")
    return before + after, before.count("\n"), len(before.rpartition("\n")[2])


def hovered(text: str) -> str | None:
    found = hover(*place(text), CEILING)
    return None if found is None else found.text


NOTHING = Beside()


def completed(text: str, beside: Beside = NOTHING) -> dict[str, str]:
    """Every completion by its label, as the whole line that it makes."""
    whole, line, column = place(text)
    written = whole.split("\n")[line]
    found = complete(whole, line, column, CEILING, beside)
    return {each.label: written[: each.start] + each.insert + written[column:] for each in found}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("na|me = 'x'", "What people call it."),
        ("[budget]\n|max_turns = 3", "At most 50 (`ceiling.max_turns`)"),
        ("[budget]\nmax_turns| = 3", "It must be given."),
        ("budget.max_t|urns = 3", "Model calls."),
        ("[bud|get]", "What it may use up."),
        ("[network]\nmo|de = 'none'", 'Default: `"none"`'),
        ("[[tools.python]]\nfi|le = 'tools/x.py'", "Its code."),
        ("[tools]\nallow = ['fs.re|ad']", "Read a text file"),
        ("[tools]\nallow = [\n  'fs.gr|ep',\n]", "Find a regular expression"),
    ],
)
def test_what_stands_under_the_cursor_is_explained(text, said):
    assert said in (hovered(text) or "")


@pytest.mark.parametrize(
    "text",
    [
        "name = 'na|me'",
        "unkn|own = 1",
        "# na|me",
        'instructions = """\nna|me = 1\n"""',
        "[budget]\nmax_turns = 3|",
        "[tools]\nallow = ['exec.an|y']",
        "|",
    ],
)
def test_nothing_is_said_of_what_is_no_setting(text):
    assert hovered(text) is None


def test_every_setting_is_explained():
    for leaf in shape.leaves(Spec):
        header = f"[{leaf.path[0]}]\n" if leaf.path[1:] else ""
        assert leaf.doc in (hovered(f"{header}|{leaf.path[-1]} = 1") or ""), leaf.path


def test_settings_complete_with_their_usual_value_and_only_once():
    found = completed("[budget]\nmax_turns = 3\nma|")
    assert found["max_tokens"] == "max_tokens = 200000"
    assert "max_turns" not in found
    assert completed("lyma|")["lyma_agent"] == "lyma_agent = 1"
    assert completed("[tools]\nal|")["allow"] == "allow = []"
    assert completed("[[tools.python]]\nfi|")["file"] == 'file = ""'


def test_an_agent_can_be_written_by_completion_alone():
    """All that is offered, in its usual values, is a specification that only lacks its words."""
    text = "".join(f"{line}\n" for line in completed("|").values())
    for section in (part.path[0] for part in shape.parts(Spec).values() if isinstance(part, shape.Section)):
        text += f"[{section}]\n" + "".join(f"{line}\n" for line in completed(f"[{section}]\n|").values())
    text = text.replace('name = ""', 'name = "a"').replace('class = ""', 'class = "fast"')
    text = re.sub(r'(purpose|instructions) = ""', r'\1 = "b"', text)
    assert examine(Source(text.encode()), CEILING).diagnostics == ()


@pytest.mark.parametrize(
    ("text", "label", "line"),
    [
        ("[bu|", "[budget]", "[budget]"),
        ("|[", "[model]", "[model]["),
        ("[[|", "[[tools.python]]", "[[tools.python]]"),
        ("[tools]\nallow = [|", "fs.read", 'allow = ["fs.read"'),
        ('[tools]\nallow = [\n  "fs.r|', "fs.read", '  "fs.read"'),
        ("[model]\nclass = |", "strong", 'class = "strong"'),
        ('[network]\nmode = "n|', "none", 'mode = "none"'),
    ],
)
def test_sections_and_values_complete(text, label, line):
    assert completed(text)[label] == line


def test_what_lies_beside_completes():
    beside = Beside(("tools/count.py", "schema/output.json"), ((HASH, "below"),))
    assert list(completed("[[tools.python]]\nfile = |", beside)) == ["tools/count.py"]
    assert list(completed("[output]\nschema = |", beside)) == ["schema/output.json"]
    assert completed("[delegate]\nagents = [|", beside) == {HASH: f'agents = ["{HASH}"'}


def test_symbols_are_tables_with_their_settings():
    found = symbols(TEMPLATE)
    assert [each.name for each in found][:4] == ["lyma_agent", "name", "purpose", "instructions"]
    tools = next(each for each in found if each.name == "tools")
    assert [each.name for each in tools.inside] == ["allow", "python"]
    instructions = found[3]
    lines = TEMPLATE.splitlines()
    assert (lines[instructions.first], lines[instructions.last]) == ('instructions = """', '"""')


@given(st.text("ab=.[]\"'#{},\n \\\r", max_size=80), st.integers(0, 9), st.integers(0, 20))
def test_half_written_text_never_fails(text, line, column):
    assert len(lines_of(text)) >= 1
    symbols(text)
    hover(text, line, column, CEILING)
    complete(text, line, column, CEILING, Beside())


def test_other_programs_have_an_agent_toml_too():
    assert is_agent(("w", ".lyma", "agents", "x", "agent.toml"), "")
    assert is_agent(("w", "agent.toml"), "# x\nlyma_agent = 1\n")
    assert not is_agent(("w", "agent.toml"), "[agent]\ninterval = '10s'\n")
    assert not is_agent(("w", ".lyma", "agents", "x", "other.toml"), "lyma_agent = 1")


@pytest.mark.parametrize(
    ("standing", "titles"),
    [
        (None, ["Compile"]),
        ("waiting", ["Compile", "Approve sha256:3f9a12…"]),
        ("expired", ["Compile", "Approve sha256:3f9a12…"]),
        ("approved", ["Compile", "Run"]),
        ("revoked", ["Compile"]),
    ],
)
def test_lenses_offer_what_comes_next(standing, titles):
    found = list(lens_commands("file:///a/agent.toml", HASH, standing))
    assert [each["title"] for each in found] == titles
