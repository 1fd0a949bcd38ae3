"""What commands may see and change, decided on plain data."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import pytest

from lyma_server.errors import ConfigError, MaskUnavailable
from lyma_server.isolation import surroundings, unix_sockets
from lyma_server.isolation.bwrap import bwrap_arguments
from lyma_server.isolation.confinement import Surroundings, ancestors, confine, outermost
from lyma_server.isolation.surroundings import survey
from lyma_server.isolation.unix_sockets import Reach

HOME, LYMA, WORK = Path("/home/dev"), Path("/home/dev/.lyma"), Path("/home/dev/app")


def around(**more) -> Surroundings:
    return Surroundings(**({"user_home": HOME, "lyma_homes": (LYMA,), "workspace": WORK} | more))


def words(arguments: list[str], option: str) -> list[list[str]]:
    return [arguments[i : i + 3] for i, word in enumerate(arguments) if word == option]


@pytest.mark.parametrize("workspace", [LYMA, LYMA / "agents", HOME, Path("/")])
def test_a_workspace_that_has_to_do_with_lyma_s_home_is_refused(workspace):
    with pytest.raises(MaskUnavailable, match="lie in each other"):
        confine(around(workspace=workspace))


@pytest.mark.parametrize("workspace", [Path("/tmp"), Path("/run")])
def test_a_folder_of_temporary_files_is_no_workspace_but_one_in_it_is(workspace):
    with pytest.raises(MaskUnavailable, match="work in a folder of its own"):
        confine(around(workspace=workspace))
    confine(around(workspace=workspace / "mine"))


def test_a_neighbour_with_a_similar_name_is_not():
    confine(around(workspace=Path("/home/dev/.lyma2")))


@pytest.mark.parametrize(
    "folder",
    ["/", "/home", "/home/dev", "/home/dev/.ssh", "/home/dev/.ssh/keys", "/home/dev/.lyma", "/home/dev/.lyma/x"],
)
def test_these_folders_may_never_be_writable(folder):
    with pytest.raises(ConfigError, match="may not be made writable"):
        confine(around(), writable=(Path(folder),))


def test_other_folders_may_be():
    bounds = confine(around(), writable=(Path("/srv/data"), Path("/home/dev/other")))
    assert bounds.writable == (WORK, Path("/home/dev/other"), Path("/srv/data"))


def test_a_link_to_lyma_s_home_is_refused_where_commands_could_replace_it():
    link = Path("/home/dev/links/.lyma")
    confine(around(links=(link,)))
    with pytest.raises(MaskUnavailable, match="symbolic link /home/dev/links"):
        confine(around(links=(link,)), write="everywhere")
    with pytest.raises(MaskUnavailable, match="symbolic link"):
        confine(around(links=(link,)), writable=(Path("/home/dev/links"),))


def test_the_mask_comes_last_whatever_else_is_asked_for():
    both = (LYMA, Path("/srv/lyma"))
    for write in ("workspace", "everywhere"):
        bounds = confine(
            around(lyma_homes=both, read_only=(WORK / ".git/hooks",), hidden_sockets=(Path("/srv/s"),)),
            write=write,
            writable=(Path("/opt/x"),),
            sockets=(Path("/run/docker.sock"),),
        )
        tail = ["--perms", "0700", "--tmpfs", str(LYMA), "--remount-ro", str(LYMA)]
        tail += ["--perms", "0700", "--tmpfs", "/srv/lyma", "--remount-ro", "/srv/lyma"]
        assert bwrap_arguments(bounds)[-len(tail) :] == tail


def test_a_home_in_a_home_needs_one_mask():
    bounds = confine(around(lyma_homes=(LYMA / "inner", LYMA)))
    assert bounds.masked == (LYMA,)


def test_in_workspace_mode_only_the_named_folders_are_writable():
    arguments = bwrap_arguments(confine(around(caches=(HOME / ".cache",), shared_git=Path("/home/dev/main/.git"))))
    assert arguments[arguments.index("/") - 1] == "--ro-bind"
    assert [one[1] for one in words(arguments, "--bind")] == [
        "/home/dev/.cache",
        "/home/dev/app",
        "/home/dev/main/.git",
    ]


def test_in_everywhere_mode_what_lies_above_the_mask_is_pinned():
    arguments = bwrap_arguments(confine(around(), write="everywhere"))
    assert [one[1] for one in words(arguments, "--bind")] == ["/", "/home", "/home/dev"]


@pytest.mark.parametrize("write", ["workspace", "everywhere"])
@pytest.mark.parametrize("as_root", [True, False])
def test_what_no_setting_changes(write, as_root):
    arguments = bwrap_arguments(confine(around(as_root=as_root), write=write))
    joined = " ".join(arguments)
    for fixed in (
        "--die-with-parent",
        "--new-session",
        "--unshare-pid",
        "--cap-drop ALL",
        "--dev /dev",
        "--proc /proc",
    ):
        assert fixed in joined
    for fixed in ("--ro-bind /proc/sys /proc/sys", "--ro-bind /sys /sys", "--tmpfs /tmp", "--tmpfs /run"):
        assert fixed in joined
    assert ("--unshare-user" in arguments) is not as_root
    kept = {one[1] for one in words(arguments, "--cap-add")}
    assert kept == (
        {f"CAP_{n}" for n in ("DAC_OVERRIDE", "CHOWN", "FOWNER", "FSETID", "SETUID", "SETGID")} if as_root else set()
    )


def test_a_socket_that_the_user_lets_in_is_shown_and_not_hidden():
    docker = Path("/home/dev/.docker/run/docker.sock")
    arguments = bwrap_arguments(confine(around(hidden_sockets=(docker, Path("/srv/s"))), sockets=(docker,)))
    assert words(arguments, "--ro-bind-try") == [["--ro-bind-try", str(docker), str(docker)]]
    assert ["--ro-bind", "/dev/null", "/srv/s"] in words(arguments, "--ro-bind")
    assert ["--ro-bind", "/dev/null", str(docker)] not in words(arguments, "--ro-bind")


def test_paths_are_sorted_out():
    assert outermost((Path("/a/b"), Path("/a"), Path("/a"), Path("/ab"))) == (Path("/a"), Path("/ab"))
    assert ancestors((Path("/a/b/c"), Path("/a/d"))) == (Path("/a"), Path("/a/b"))


def git(*arguments, cwd):
    config = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    subprocess.run(["git", *config, *arguments], cwd=cwd, check=True, capture_output=True)


def test_a_worktree_shares_its_repository_but_only_with_its_consent(tmp_path):
    main, tree, thief = tmp_path / "main", tmp_path / "tree", tmp_path / "thief"
    main.mkdir()
    git("init", cwd=main)
    git("commit", "--allow-empty", "-m", "first", cwd=main)
    git("worktree", "add", str(tree), cwd=main)
    assert surroundings.shared_git_folder(tree) == main / ".git"
    assert surroundings.shared_git_folder(main) is None
    assert main / ".git/hooks" in surroundings.hook_folders(tree, main / ".git")
    thief.mkdir()
    (thief / ".git").write_text((tree / ".git").read_text())
    assert surroundings.shared_git_folder(thief) is None


def test_the_survey_finds_what_there_is(tmp_path, monkeypatch):
    work, home, elsewhere = tmp_path / "work", tmp_path / "home", tmp_path / "real"
    for folder in (work, home, elsewhere):
        folder.mkdir()
    git("init", cwd=work)
    (home / ".lyma").symlink_to(elsewhere)
    found = survey(work, home, [home / ".lyma", tmp_path / "new/lyma"])
    assert found.lyma_homes == (elsewhere, tmp_path / "new/lyma")
    assert found.links == (home / ".lyma",)
    assert (tmp_path / "new/lyma").stat().st_mode & 0o777 == 0o700
    assert home / ".cache" in found.caches
    assert found.read_only == (work / ".git/hooks", surroundings.PACKAGE)


def test_a_cache_that_leads_elsewhere_is_not_opened(tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home/.cache").symlink_to("/etc")
    assert tmp_path / "home/.cache" not in surroundings.cache_folders(tmp_path / "home")
    assert Path("/etc") not in surroundings.cache_folders(tmp_path / "home")


@pytest.mark.parametrize("folder", [HOME, HOME / ".ssh", LYMA, Path("/")])
def test_what_was_found_opens_nothing_that_a_setting_could_not(folder):
    assert confine(around(caches=(folder,), shared_git=folder)).writable == (WORK,)


def test_sockets_of_others_are_found(tmp_path):
    with socket.socket(socket.AF_UNIX) as one, socket.socket(socket.AF_UNIX) as other:
        for server, name in ((one, "work/a b"), (other, "s")):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            server.bind(str(tmp_path / name))
            server.listen()
        now = unix_sockets.named_sockets()
        found = unix_sockets.to_hide(now, Reach(hidden=(tmp_path,), workspace=tmp_path / "work"))
        everything = unix_sockets.to_hide(now, Reach(hidden=(), workspace=tmp_path / "work"))
        let_in = unix_sockets.to_hide(now, Reach(hidden=(), workspace=tmp_path / "work", let_in=(tmp_path / "s",)))
    assert tmp_path / "work/a b" in found
    assert tmp_path / "s" not in found
    assert {tmp_path / "work/a b", tmp_path / "s"} <= set(everything)
    assert tmp_path / "s" not in let_in


def test_a_socket_with_a_relative_name_is_found(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s")
        server.listen()
        assert tmp_path / "s" in unix_sockets.places(unix_sockets.named_sockets())


def test_whose_a_socket_is(tmp_path):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        server.listen()
        mine = next(each for each in unix_sockets.named_sockets() if each.name == str(tmp_path / "s"))
        assert unix_sockets.held_by([os.getpid()], {mine.number}) == {mine.number}
        assert unix_sockets.held_by([os.getppid(), 1, 2**22 + 1], {mine.number}) == set()


def test_a_workspace_in_a_private_folder_is_there_with_either_setting():
    for write in ("workspace", "everywhere"):
        bounds = confine(around(workspace=Path("/tmp/work"), caches=(HOME / ".cache",)), write=write)
        assert Path("/tmp/work") in bounds.writable
        assert (HOME / ".cache" in bounds.writable) is (write == "workspace")


def test_our_own_programs_are_shown_where_commands_would_not_see_them(monkeypatch):
    monkeypatch.setattr(surroundings, "PACKAGE", Path("/tmp/venv/lib/site-packages/lyma_server"))
    monkeypatch.setattr(surroundings.sys, "prefix", "/tmp/venv")
    monkeypatch.setattr(surroundings.sys, "base_prefix", "/usr")
    assert surroundings.own_programs() == [Path("/tmp/venv")]
    arguments = bwrap_arguments(confine(around(run_files=(Path("/tmp/venv"),), workspace=Path("/tmp/venv/app"))))
    assert arguments.index("/tmp/venv") < arguments.index("/tmp/venv/app"), "the workspace stays writable"
