"""A change touches what it names and nothing else."""

from __future__ import annotations

import copy
import difflib
import os
import re
import stat
import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lyma_server.config import kinds, shape, splice, store
from lyma_server.config.edit import add_key, remove_key, remove_last_key, set_value
from lyma_server.config.load import load_settings
from lyma_server.config.paths import Home
from lyma_server.config.splice import toml_text
from lyma_server.errors import ConfigError, UsageError
from lyma_server.secret import Secret

COMMENTED = """\
# my settings

order = ["openai"] # first

[router]  # how calls go
  deadline_s = 5   # five

# the server at home
[providers.local]
base_url = "http://127.0.0.1:1/v1"

[[providers.openai.key]]
value = "sk-aaaaaaaaaaaaaaaaaaaa" # the first

# the second
[[providers.openai.key]]
value = "sk-bbb"

# keys of qwen
[providers.qwen]
keys = [
  "a1",  # one
  # before two
  "a2",
  "a3"   # three
]
[providers.kimi]
keys = ["x", "y"]
"""
DOTTED = "# dots\nrouter.deadline_s = 5 # five\nrouter.connect_s = 6\nproviders.openai.model = 'm'\n"
INLINE = "router = { deadline_s = 5 } # in one\nagent={confirm='all'}\n"
SCATTERED = "[providers.openai]\nmodel = 'a'\n\n[router]\nconnect_s = 1\n\n[providers.kimi]\nmodel = 'b' # b\n[agent]\n"
NO_END = "# no line break at the end\n[agent]\nmax_steps = 1_000"
WINDOWS = COMMENTED.replace("\n", "\r\n")
DOCUMENTS = {
    "commented": COMMENTED,
    "dotted": DOTTED,
    "inline": INLINE,
    "scattered": SCATTERED,
    "no end": NO_END,
    "windows": WINDOWS,
    "empty": "",
}


@pytest.fixture
def home(tmp_path) -> Home:
    return Home(tmp_path / "home")


def write(home: Home, text: str) -> None:
    home.ensure()
    home.config.write_bytes(text.encode())
    home.config.chmod(0o600)


def read(home: Home) -> str:
    return home.config.read_bytes().decode()


def changed_lines(before: str, after: str) -> list[str]:
    """The lines that went, with "-", and those that came, with "+"."""
    lines = difflib.ndiff(before.splitlines(), after.splitlines())
    return [line[0] + line[2:] for line in lines if line[0] in "+-"]


@pytest.mark.parametrize(
    ("text", "key", "value", "lines"),
    [
        (COMMENTED, "router.deadline_s", "7", ["-  deadline_s = 5   # five", "+  deadline_s = 7   # five"]),
        (COMMENTED, "router.connect_s", "7", ["+  connect_s = 7"]),
        (COMMENTED, "agent.max_steps", "7", ["+", "+[agent]", "+max_steps = 7"]),
        (COMMENTED, "factory.ceiling.wall_s", "7", ["+", "+[factory.ceiling]", "+wall_s = 7"]),
        (COMMENTED, "order", "openai, local", ['-order = ["openai"] # first', '+order = ["openai", "local"] # first']),
        (COMMENTED, "providers.local.model", 'a"b', ['+model = "a\\"b"']),
        (
            COMMENTED,
            "folders",
            '[{path = "~/w", order = ["kimi"]}]',
            ['+folders = [{ path = "~/w", order = ["kimi"] }]'],
        ),
        (DOTTED, "router.deadline_s", "7", ["-router.deadline_s = 5 # five", "+router.deadline_s = 7 # five"]),
        (NO_END, "agent.max_steps", "7", ["-max_steps = 1_000", "+max_steps = 7"]),
        (NO_END, "agent.confirm", "all", ['+confirm = "all"']),
        ("# mine\n\n# of the router\n[router]\n", "order", "kimi", ['+order = ["kimi"]']),
        ("", "agent.confirm", "all", ["+[agent]", '+confirm = "all"']),
    ],
)
def test_set_changes_the_lines_that_it_must(home, text, key, value, lines):
    write(home, text)
    set_value(home, key, value)
    assert changed_lines(text, read(home)) == lines


def test_a_new_setting_stays_before_the_comment_of_the_next_table(home):
    write(home, COMMENTED)
    set_value(home, "router.connect_s", "7")
    assert "  connect_s = 7\n\n# the server at home\n[providers.local]" in read(home)


def with_value(document: dict, path: tuple[str, ...], value: object) -> dict:
    table = document = copy.deepcopy(document)
    for step in path[:-1]:
        table = table.setdefault(step, {})
    table[path[-1]] = value
    return document


AWKWARD = "ab #='\"\\[]{},.\n\té€\u2028\U0001f511"


def text_of(kind) -> st.SearchStrategy[str]:
    """Texts that a setting of this kind accepts."""
    match kind:
        case kinds.Whole():
            return st.integers(kind.least, 10**9).map(str)
        case kinds.Choice():
            return st.sampled_from(kind.options)
        case kinds.Text():
            return st.text(AWKWARD, min_size=1, max_size=12).filter(str.strip)
        case kinds.ListOf(item=kinds.Text()):
            return st.lists(st.sampled_from(["openai", "kimi", "qwen"]), unique=True).map(lambda items: str(items))
    raise AssertionError(kind)


COMMENTS = {name: re.findall(r"# [a-z ]+", text) for name, text in DOCUMENTS.items()}
SETTABLE = [leaf for leaf in shape.leaves() if leaf.path[-1] not in {"keys", "folders", "base_url"}]


@st.composite
def assignments(draw):
    leaf = draw(st.sampled_from(SETTABLE))
    path = tuple(draw(st.sampled_from(["openai", "kimi", "qwen"])) if step == "*" else step for step in leaf.path)
    return path, draw(text_of(leaf.kind))


@settings(max_examples=40)
@given(name=st.sampled_from(list(DOCUMENTS)), steps=st.lists(assignments(), min_size=1, max_size=3))
def test_set_means_what_it_says_and_keeps_every_other_byte(tmp_path_factory, name, steps):
    home = Home(tmp_path_factory.mktemp("edit"))
    write(home, DOCUMENTS[name])
    for path, text in steps:
        before = read(home)
        set_value(home, ".".join(path), text)
        after = read(home)
        value = shape.find_leaf(path).kind.parse(text)
        assert tomllib.loads(after) == with_value(tomllib.loads(before), path, value)
        assert_other_bytes_are_kept(before, after, path)
        assert [comment for comment in COMMENTS[name] if comment not in after] == []


def common_length(one: str, other: str) -> int:
    """How many characters both begin with."""
    return next(
        (at for at, pair in enumerate(zip(one, other, strict=False)) if len(set(pair)) > 1), min(len(one), len(other))
    )


def assert_other_bytes_are_kept(before: str, after: str, path: tuple[str, ...]) -> None:
    """Cut what is common at both ends: what remains of the old text is at most the old value, of the new one the new."""
    old = tomllib.loads(before)
    for step in path:
        old = old.get(step) if isinstance(old, dict) else None
    start = common_length(before, after)
    tail = common_length(before[start:][::-1], after[start:][::-1])
    removed = before[start : len(before) - tail]
    if old is None:
        assert removed.strip() in ("", "}")
    else:
        assert len(removed) <= len(toml_text(old)) + 1


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("router.deadline", "7", "router.deadline is not a setting; did you mean router.deadline_s?"),
        ("router", "7", "router is not a setting"),
        ("providers.openai.keys", "x", "Keys are no plain settings: use `lyma keys add openai`"),
        (
            "router.deadline_s",
            "soon",
            "Nothing was changed: router.deadline_s must be a whole number of at least 1, not a string",
        ),
        ("agent.confirm", "edit", "did you mean edits?"),
        (
            "order",
            "openai,locl",
            "order (item 2) names a provider that is neither known nor configured; did you mean local?",
        ),
        ("providers.gpu.model", "m", "providers.gpu.base_url is missing"),
        ("providers.gpu.base_url", "gpu:1", "must be an address"),
        ("providers.gpu.base_url", "unix:llama.sock", "the path of a socket"),
        ("providers.gpu.base_url", "unix:", "the path of a socket"),
    ],
)
def test_what_would_be_wrong_is_not_written(home, key, value, message):
    write(home, COMMENTED)
    with pytest.raises(UsageError) as caught:
        set_value(home, key, value)
    assert message in caught.value.message
    assert read(home) == COMMENTED


def test_a_provider_from_the_environment_may_be_named(home):
    write(home, "")
    set_value(home, "order", "gpu", {"LYMA_PROVIDERS__GPU__BASE_URL": "http://127.0.0.1:1/v1"})
    assert read(home) == 'order = ["gpu"]\n'


def test_a_file_with_other_mistakes_can_be_mended_step_by_step(home):
    write(home, "[agent]\nmax_steps = 0\nconfirm = 'x'\n")
    set_value(home, "agent.max_steps", "3")
    set_value(home, "agent.confirm", "all")
    assert load_settings({}, home).settings.agent.max_steps == 3


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('order = [\n  "openai", # mine\n]\n', "order"),
        ("router = 5\n", "router.deadline_s"),
        ('[[folders]] # mine\npath = "a"\norder = ["kimi"]\n', "folders"),
    ],
)
def test_what_cannot_be_changed_alone_is_left_to_the_user(home, text, key):
    write(home, text)
    value = {"order": "kimi", "router.deadline_s": "5", "folders": '[{path = "b", order = ["kimi"]}]'}[key]
    with pytest.raises(ConfigError, match="edit it by hand"):
        set_value(home, key, value)
    assert read(home) == text


def test_a_file_that_is_not_toml_is_not_touched(home):
    write(home, "order = [")
    with pytest.raises(ConfigError, match="must be valid TOML"):
        set_value(home, "order", "kimi")
    assert read(home) == "order = ["


NEW = Secret("sk-new")


@pytest.mark.parametrize(
    ("text", "provider", "account", "lines"),
    [
        (COMMENTED, "openai", None, ["+[[providers.openai.key]]", '+value = "sk-new"', "+"]),
        (COMMENTED, "openai", "work", ["+[[providers.openai.key]]", '+value = "sk-new"', '+account = "work"', "+"]),
        (COMMENTED, "qwen", None, ['-  "a3"   # three', '+  "a3",   # three', '+  "sk-new"']),
        (COMMENTED, "kimi", None, ['-keys = ["x", "y"]', '+keys = ["x", "y", "sk-new"]']),
        (
            COMMENTED,
            "kimi",
            "work",
            ['-keys = ["x", "y"]', '+keys = ["x", "y", { value = "sk-new", account = "work" }]'],
        ),
        (COMMENTED, "local", None, ['+keys = ["sk-new"]']),
        (COMMENTED, "anthropic", None, ["+", "+[providers.anthropic]", '+keys = ["sk-new"]']),
        ('[providers.kimi]\nkeys = [\n  "x",\n]\n', "kimi", None, ['+  "sk-new",']),
        ('[providers.kimi]\nkeys = [\n  "x", # [\n]\n', "kimi", None, ['+  "sk-new",']),
        ('[providers.kimi]\nkeys = [\n  "x"]\n', "kimi", None, ['-  "x"]', '+  "x", "sk-new"]']),
        ("[providers.kimi]\nkeys = [] # none\n", "kimi", None, ["-keys = [] # none", '+keys = ["sk-new"] # none']),
        (
            '[providers]\nkimi = { keys = ["x"] }\n',
            "kimi",
            None,
            ['-kimi = { keys = ["x"] }', '+kimi = { keys = ["x", "sk-new"] }'],
        ),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_key_is_added_after_the_others(home, text, provider, account, lines, newline):
    text = text.replace("\n", newline)
    write(home, text)
    before = load_settings({}, home).settings.providers
    add_key(home, provider, NEW, account)
    assert sorted(changed_lines(text, read(home))) == sorted(lines)
    keys = load_settings({}, home).settings.providers[provider].keys
    assert keys[:-1] == (before[provider].keys if provider in before else ())
    assert (keys[-1].value, keys[-1].account) == (NEW, account)


def test_keys_in_the_usual_variable_are_not_lost_when_the_file_gets_its_first(home):
    environ = {"OPENAI_API_KEY": "x", "OPENAI_API_KEY_2": "y"}
    add_key(home, "openai", NEW, None, environ)
    assert read(home) == '[providers.openai]\nkeys = ["env:OPENAI_API_KEY", "env:OPENAI_API_KEY_2", "sk-new"]\n'
    add_key(home, "kimi", Secret("env:MOONSHOT_API_KEY"), None, {"MOONSHOT_API_KEY": "x"})
    assert 'keys = ["env:MOONSHOT_API_KEY"]' in read(home)


@pytest.mark.parametrize(
    ("provider", "value", "message"),
    [
        ("kimi", "x", "kimi has this key already"),
        ("openai", "sk-bbb", "openai has this key already"),
        ("kimi", "a b", "a key of kimi must be a key, env:NAME or cmd:COMMAND"),
        ("gpu", "sk-new", "gpu is not a known provider"),
        ("a.b", "sk-new", "other characters than letters, digits, - and _"),
    ],
)
def test_a_key_that_cannot_be_is_not_added(home, provider, value, message):
    write(home, COMMENTED)
    with pytest.raises((UsageError, ConfigError)) as caught:
        add_key(home, provider, Secret(value))
    assert message in caught.value.message
    assert read(home) == COMMENTED


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("provider", "number", "lines"),
    [
        ("openai", 1, ["-[[providers.openai.key]]", '-value = "sk-aaaaaaaaaaaaaaaaaaaa" # the first']),
        ("openai", 2, ["-[[providers.openai.key]]", '-value = "sk-bbb"']),
        ("qwen", 1, ['-  "a1",  # one']),
        ("qwen", 2, ['-  "a2",']),
        ("qwen", 3, ['-  "a3"   # three']),
        ("kimi", 1, ['-keys = ["x", "y"]', '+keys = ["y"]']),
        ("kimi", 2, ['-keys = ["x", "y"]', '+keys = ["x"]']),
    ],
)
def test_a_key_is_removed_and_its_neighbours_stay(home, provider, number, lines, newline):
    text = COMMENTED.replace("\n", newline)
    write(home, text)
    before = list(load_settings({}, home).settings.providers[provider].keys)
    remove_key(home, provider, number)
    assert changed_lines(text, read(home)) == lines
    del before[number - 1]
    assert list(load_settings({}, home).settings.providers[provider].keys) == before


@pytest.mark.parametrize(
    "text",
    [
        '[[providers.kimi.key]]\nvalue = "x"\n',
        '[providers.kimi]\nkey = [{ value = "x" }]\n',
        '[providers.kimi]\nkeys = ["x"]\n',
        'providers.kimi.keys = [ "x", ]\n',
    ],
)
def test_the_only_key_is_removed(home, text):
    write(home, text)
    remove_last_key(home, "kimi")
    providers = load_settings({}, home).settings.providers
    assert "kimi" not in providers or providers["kimi"].keys == ()


@pytest.mark.parametrize(
    ("provider", "number", "message"),
    [
        ("kimi", 0, "kimi has no key 0; it has 2. `lyma keys list` shows them."),
        ("kimi", 3, "kimi has no key 3; it has 2."),
        ("local", 1, "local has no key 1; it has none in the file."),
        ("nobody", 1, "nobody has no key 1; it has none in the file."),
    ],
)
def test_a_key_that_is_not_there_is_not_removed(home, provider, number, message):
    write(home, COMMENTED)
    with pytest.raises(UsageError) as caught:
        remove_key(home, provider, number)
    assert message in caught.value.message
    assert read(home) == COMMENTED


@pytest.mark.parametrize("text", ["providers = 5\n", "[providers]\nkimi = 5\n", "[providers.kimi]\nkeys = 'x'\n"])
def test_keys_that_are_not_written_as_keys_are_left_alone(home, text):
    write(home, text)
    with pytest.raises(ConfigError, match="not written as they should be"):
        add_key(home, "kimi", NEW)
    assert read(home) == text


def test_the_first_change_makes_the_home_and_the_file_for_their_owner_alone(home):
    old = os.umask(0)
    try:
        set_value(home, "agent.confirm", "all")
    finally:
        os.umask(old)
    assert stat.S_IMODE(home.root.stat().st_mode) == 0o700
    assert stat.S_IMODE(home.config.stat().st_mode) == 0o600
    assert os.listdir(home.root) == ["config.toml"]


def test_a_write_that_fails_changes_nothing_and_leaves_nothing(home, monkeypatch):
    write(home, COMMENTED)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store.os, "fsync", full)
    with pytest.raises(ConfigError, match=r"cannot be written \(No space left on device\); it is unchanged"):
        set_value(home, "router.deadline_s", "7")
    assert read(home) == COMMENTED
    assert os.listdir(home.root) == ["config.toml"]


def test_two_editors_at_once_lose_nothing(home):
    write(home, COMMENTED)
    import threading

    keys = [f"sk-number-{number}" for number in range(8)]
    threads = [threading.Thread(target=add_key, args=(home, "kimi", Secret(each))) for each in keys]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stored = [each.value.reveal() for each in load_settings({}, home).settings.providers["kimi"].keys]
    assert sorted(stored) == sorted(["x", "y", *keys])


@pytest.mark.parametrize(
    "proposal",
    [
        COMMENTED.replace("deadline_s = 5 ", "deadline_s = 8 "),  # another value
        COMMENTED.replace("deadline_s = 5 ", "deadline_s = 7 ") + "[agent]\nmax_steps = 1\n",  # more than was asked for
        COMMENTED.replace("deadline_s = 5   # five", "deadline_s = 7"),  # without its comment
        "order = [",  # no TOML at all
    ],
)
def test_a_text_that_does_more_or_less_than_asked_is_never_written(home, monkeypatch, proposal):
    write(home, COMMENTED)
    monkeypatch.setattr(splice, "with_value", lambda text, path, value: iter([proposal]))
    with pytest.raises(ConfigError, match="edit it by hand"):
        set_value(home, "router.deadline_s", "7")
    assert read(home) == COMMENTED
