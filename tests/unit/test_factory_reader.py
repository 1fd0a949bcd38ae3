"""Reading an agent from its folder: only plain files that it names, never through a link."""

from __future__ import annotations

import os
import socket

import pytest

from lyma_server.config.model import CeilingSettings
from lyma_server.errors import UsageError
from lyma_server.factory.reader import examine_folder, named_in, read_agent
from tests.agents import FILES, TOOL, bundle, source, text_of


@pytest.fixture
def folder(tmp_path):
    agent = tmp_path / "agent"
    for name, text in {"agent.toml": source().text.decode(), **FILES}.items():
        (agent / name).parent.mkdir(parents=True, exist_ok=True)
        (agent / name).write_text(text)
    return agent


def codes(folder):
    found = examine_folder(folder, CeilingSettings())
    assert found.bundle is None
    return {(each.code, each.file) for each in found.diagnostics}


def test_an_agent_is_read_and_compiled(folder):
    (folder / "README.md").write_text("Not part of it.")
    assert examine_folder(folder, CeilingSettings()).bundle == bundle()


def test_a_buffer_stands_in_for_the_file(folder):
    (folder / "agent.toml").write_text("broken")
    assert examine_folder(folder, CeilingSettings(), text=source().text).bundle == bundle()


def link(path):
    path.rename(path.with_name("real"))
    path.symlink_to("real")


def hard_link(path):
    os.link(path, path.parent.parent / "second-name")


def pipe(path):
    path.unlink()
    os.mkfifo(path)


def unix_socket(path):
    path.unlink()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


def folder_instead(path):
    path.unlink()
    path.mkdir()


def nothing(path):
    path.unlink()


def large(path):
    path.write_bytes(b"#" * (64 * 1024 + 1))


def twin(path):
    path.with_name(path.name.upper().replace(".PY", ".py")).write_text(TOOL)


def linked_folder(path):
    path.parent.rename(path.parent.with_name("elsewhere"))
    path.parent.symlink_to("elsewhere")


def file_instead(path):
    path.unlink()
    path.parent.rmdir()
    path.parent.write_text("")


CHANGES = {
    link: "symlink",
    hard_link: "hard_link",
    pipe: "not_regular",
    unix_socket: "not_regular",
    folder_instead: "not_regular",
    nothing: "missing_file",
    large: "too_large",
    twin: "case_twin",
    linked_folder: "symlink",
    file_instead: "not_a_folder",
}


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_anything_but_a_plain_file_is_refused(folder, change):
    change(folder / "tools" / "count.py")
    found = codes(folder)
    expected = CHANGES[change]
    assert found <= {(expected, "tools/count.py"), ("not_a_folder", "tools/count.py")}
    assert found


@pytest.mark.parametrize(
    "change", [link, hard_link, pipe, folder_instead, nothing, large], ids=lambda change: change.__name__
)
def test_the_same_holds_for_agent_toml(folder, change):
    change(folder / "agent.toml")
    with pytest.raises(UsageError, match=r"agent\.toml"):
        read_agent(folder)


def test_a_linked_folder_is_refused(folder):
    folder.with_name("link").symlink_to(folder)
    with pytest.raises(UsageError):
        read_agent(folder.with_name("link"))


def test_what_is_read_is_only_what_its_settings_name():
    assert named_in(source().text) == tuple(sorted(FILES))
    sneaky = {
        "tools": {"python": [{"file": "../../etc/passwd", "schema": 3}, "tools/x.py"]},
        "output": {"schema": ["schema/a.json"]},
    }
    assert named_in(text_of(sneaky)) == ()
    assert (
        named_in(
            text_of({"files": {"read": ["tools/count.py"]}, "tools": {"python": {"file": "tools/a.py"}}, "output": 3})
        )
        == ()
    )
    assert named_in(b"not toml at all [") == ()


def test_other_mistakes_are_told_beside_what_could_not_be_read(folder):
    nothing(folder / "tools" / "count.py")
    (folder / "schema" / "output.json").write_text("[]")
    assert codes(folder) == {("missing_file", "tools/count.py"), ("bad_schema", "schema/output.json")}
