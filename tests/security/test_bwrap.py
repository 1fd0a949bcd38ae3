"""What only bubblewrap does, with the real one."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from attrs import evolve

from lyma_server.errors import MaskUnavailable
from lyma_server.isolation import canary
from lyma_server.isolation.bwrap import bwrap_arguments
from tests.security.world import BWRAPS, LINUX, PLAIN, WHO, WRITE, made_world

pytestmark = [LINUX, pytest.mark.skipif(not BWRAPS, reason="this kernel or container lets bubblewrap do nothing")]


@pytest.fixture(params=WRITE)
def write(request):
    return request.param


@pytest.fixture(params=WHO)
def world(request, write):
    with made_world("bwrap", request.param, write) as made:
        yield made


async def test_a_bind_after_the_mask_would_show_it_and_the_canary_sees_that(world):
    """The control: what the canary is for."""
    words = [*world.drop, str(BWRAPS[0]), *bwrap_arguments(world.bounds)]
    with pytest.raises(MaskUnavailable, match="can be read"):
        await canary.prove_mask([*words, "--bind", str(world.home), str(world.home)], world.bounds, world.runtime)
    unclosed = [word for word in words if word != "--remount-ro"]
    unclosed = unclosed[: unclosed.index(str(world.lyma)) + 1]
    with pytest.raises(MaskUnavailable, match="can be written"):
        await canary.prove_mask(unclosed, world.bounds, world.runtime)


async def test_a_mask_on_a_link_or_on_nothing_starts_no_command(world):
    (world.home / "link").symlink_to(world.lyma)
    for place in (world.home / "link", Path("/nowhere/lyma")):
        bounds = evolve(world.bounds, write="workspace", pinned=(), writable=(world.work,), masked=(place,))
        status, _ = await world.run("true", bounds)
        assert status != 0


async def test_the_mask_and_tmp_look_empty(world):
    assert await world.run(f"ls -A {world.lyma} && ls -A /tmp") == (0, "")
    assert await world.run("echo x > /tmp/x && cat /tmp/x") == (0, "x\n")


async def test_processes_outside_are_not_seen(world):
    _, said = await world.run("cat /proc/[0-9]*/comm")
    assert set(said.split()) <= {"bwrap", "sh", "cat"}
    assert "bwrap" in said


async def test_unpinned_a_folder_above_the_mask_could_be_replaced(world, write):
    """The control: what the pins are for."""
    road = f"mv {world.home} {world.home}2 && mkdir -p {world.lyma} && echo forged > {world.lyma}/config.toml"
    status, _ = await world.run(road, evolve(world.bounds, pinned=()))
    assert (status == 0) is (write == "everywhere")


async def test_hooks_are_read_only(world):
    hooks = world.work / ".git/hooks"
    hooks.mkdir(parents=True)
    (world.work / ".git/HEAD").write_text("ref: refs/heads/main")
    hooks.chmod(0o777)
    status, said = await world.run("echo x > .git/hooks/pre-commit", world.confine())
    assert status != 0, said
    status, said = await world.run("echo x > .git/hooks/pre-commit")
    assert status == 0, "the control"


async def test_hooks_cannot_be_moved_aside_for_a_copy_that_can_be_written(world):
    modules = world.work / ".git/modules/part"
    for folder in (world.work / ".git", modules):
        (folder / "hooks").mkdir(parents=True)
        (folder / "HEAD").write_text("ref: refs/heads/main")
        (folder / "hooks").chmod(0o777)
    if world.drop:
        subprocess.run(["chown", "-R", f"{PLAIN}:{PLAIN}", str(world.work)], check=True)
    bounds = world.confine()
    for folder in (".git", ".git/modules", ".git/modules/part"):
        status, said = await world.run(f"mv {folder} aside", bounds)
        assert (status, (world.work / folder).is_dir()) == (1, True), said
    status, said = await world.run("echo x > .git/index && mkdir .git/refs && mv .git/refs .git/refs2", bounds)
    assert status == 0, said
    status, said = await world.run("mv .git aside && mkdir -p .git/hooks && echo x > .git/hooks/pre-commit")
    assert status == 0, "the control"
