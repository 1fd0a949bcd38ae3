"""Bundles on the disk: stored whole or not at all, and read only as what their hash says."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from lyma_server.errors import HashMismatch, LymaError, UsageError
from lyma_server.factory.bundle import Bundle, make_bundle
from lyma_server.factory.canonical import canonical
from lyma_server.factory.folder import Folder, Unfit
from lyma_server.factory.store import Store
from tests.agents import bundle, plain_bundle

BUNDLE = bundle()


@pytest.fixture
def store(tmp_path):
    made = Store(tmp_path / "agents")
    made.save(BUNDLE, {"model": "m", "task": "t"})
    return made


@pytest.fixture
def place(tmp_path, store):
    return tmp_path / "agents" / BUNDLE.hash.replace(":", "-")


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_what_is_stored_is_read_back(store, place):
    assert store.load(BUNDLE.hash) == BUNDLE
    assert store.hashes() == (BUNDLE.hash,)
    assert store.provenance(BUNDLE.hash) == {"model": "m", "task": "t"}
    folders = [place, *(path for path in place.rglob("*") if path.is_dir())]
    assert {mode(path) for path in folders} == {0o555}
    assert {mode(path) for path in place.rglob("*") if path.is_file()} == {0o444}
    assert mode(place.parent) == 0o700
    assert sorted(path.name for path in place.parent.iterdir()) == [place.name, f"{place.name}.provenance.json"]


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_modes_do_not_depend_on_the_umask(tmp_path, mask):
    before = os.umask(mask)
    try:
        Store(tmp_path / "agents").save(BUNDLE)
    finally:
        os.umask(before)
    (place,) = (tmp_path / "agents").iterdir()
    assert {mode(path) for path in place.rglob("*") if path.is_file()} == {0o444}


def test_storing_twice_changes_nothing(store, place):
    before = place.stat()
    store.save(BUNDLE)
    assert (place.stat().st_ino, place.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def replaced(path: Path, content: bytes) -> None:
    path.parent.chmod(0o755)
    path.unlink()
    path.write_bytes(content)
    path.chmod(0o444)


def each_byte_changed(place):
    for path in sorted(place.rglob("*")):
        if path.is_file():
            content = bytearray(path.read_bytes())
            for position in {0, len(content) // 2, len(content) - 1}:
                changed = bytearray(content)
                changed[position] ^= 1
                yield path, bytes(content), bytes(changed)


def test_one_changed_bit_anywhere_is_refused(store, place):
    for path, content, changed in each_byte_changed(place):
        replaced(path, changed)
        with pytest.raises(HashMismatch):
            store.load(BUNDLE.hash)
        replaced(path, content)
    assert store.load(BUNDLE.hash) == BUNDLE


def extra_file(place):
    (place / "extra.md").write_text("")


def extra_tool(place):
    (place / "tools").chmod(0o755)
    (place / "tools" / "more.py").write_text("")


def extra_folder(place):
    (place / "more").mkdir()


def hidden_file(place):
    (place / ".hidden").write_text("")


def missing(place):
    (place / "instructions.md").unlink()


def no_manifest(place):
    (place / "manifest.json").unlink()


def truncated(place):
    replaced(place / "instructions.md", (place / "instructions.md").read_bytes()[:-1])


def longer(place):
    replaced(place / "instructions.md", (place / "instructions.md").read_bytes() + b"\n")


def linked_file(place):
    path = place / "instructions.md"
    path.rename(place.parent / "outside.md")
    path.symlink_to(place.parent / "outside.md")


def hard_linked(place):
    os.link(place / "instructions.md", place.parent / "second")


def linked_tools(place):
    (place / "tools").chmod(0o755)
    (place / "tools").rename(place.parent / "outside")
    (place / "tools").symlink_to(place.parent / "outside")


def linked_whole(place):
    place.rename(place.parent / "elsewhere")
    place.symlink_to(place.parent / "elsewhere")


def pipe(place):
    (place / "instructions.md").unlink()
    os.mkfifo(place / "instructions.md")


def open_to_others(place):
    (place / "instructions.md").chmod(0o666)


def open_folder(place):
    place.chmod(0o777)


def open_tools(place):
    (place / "tools").chmod(0o777)


def another_manifest(place):
    replaced(place / "manifest.json", plain_bundle().manifest)


SPOILING = (extra_file, extra_tool, extra_folder, hidden_file, missing, no_manifest, truncated, longer, linked_file, hard_linked, linked_tools,
            linked_whole, pipe, open_to_others, open_folder, open_tools, another_manifest)  # fmt: skip


@pytest.mark.parametrize("spoil", SPOILING, ids=lambda spoil: spoil.__name__)
def test_anything_else_than_what_was_stored_is_refused(store, place, spoil):
    place.chmod(0o755)
    spoil(place)
    with pytest.raises((HashMismatch, UsageError)) as caught:
        store.load(BUNDLE.hash)
    assert "compile it again" in caught.value.message or "no compiled agent" in caught.value.message
    if not place.is_symlink():
        store.save(BUNDLE)
        assert store.load(BUNDLE.hash) == BUNDLE


def test_another_bundle_in_its_place_is_refused(store, place):
    other = plain_bundle()
    store.save(other)
    place.rename(place.with_name("aside"))
    place.with_name(other.hash.replace(":", "-")).rename(place)
    with pytest.raises(HashMismatch, match="its manifest is another one"):
        store.load(BUNDLE.hash)


def test_what_lies_in_the_place_of_a_bundle_gives_way(tmp_path):
    agents = tmp_path / "agents"
    agents.mkdir(mode=0o700)
    name = BUNDLE.hash.replace(":", "-")
    (agents / name).symlink_to("/")
    Store(agents).save(BUNDLE)
    assert Store(agents).load(BUNDLE.hash) == BUNDLE
    assert Path("/etc").exists()


def test_a_home_that_others_may_write_is_refused(store, place):
    place.parent.chmod(0o777)
    with pytest.raises(HashMismatch, match="changed by others"):
        store.load(BUNDLE.hash)


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"files": {}},
        {"files": {"../x": {"sha256": "", "size": 0}}},
        {"files": {"instructions.md": {}}},
        {"files": []},
    ],
)
def test_a_manifest_of_another_shape_is_refused_even_with_the_right_hash(tmp_path, facts):
    odd = Bundle(canonical({"spec": {"name": "x"}, **facts}), {"instructions.md": b"x"})
    agents = tmp_path / "agents"
    place = agents / odd.hash.replace(":", "-")
    place.mkdir(parents=True, mode=0o755)
    agents.chmod(0o700)
    (place / "manifest.json").write_bytes(odd.manifest)
    (place / "instructions.md").write_bytes(b"x")
    with pytest.raises(HashMismatch, match="malformed"):
        Store(agents).load(odd.hash)


def test_a_manifest_that_is_not_canonical_is_refused(tmp_path):
    sound = make_bundle({"spec": {"name": "x"}}, {"instructions.md": b"x"})
    loose = Bundle(sound.manifest.replace(b'":', b'": '), sound.files)
    agents = tmp_path / "agents"
    place = agents / loose.hash.replace(":", "-")
    place.mkdir(parents=True)
    agents.chmod(0o700)
    (place / "manifest.json").write_bytes(loose.manifest)
    (place / "instructions.md").write_bytes(b"x")
    with pytest.raises(HashMismatch, match="malformed"):
        Store(agents).load(loose.hash)


@pytest.mark.parametrize(
    "wanted",
    [
        "",
        "sha256:",
        BUNDLE.hash[:-1],
        BUNDLE.hash.upper(),
        f"../{BUNDLE.hash}",
        BUNDLE.hash.removeprefix("sha256:"),
        f"{BUNDLE.hash}\n",
    ],
)
def test_only_a_full_hash_is_loaded(store, wanted):
    with pytest.raises(UsageError, match="not the full hash"):
        store.load(wanted)


def test_a_hash_that_is_not_there(store, tmp_path):
    for where in (store, Store(tmp_path / "nowhere"), Store(tmp_path / "no" / "where")):
        with pytest.raises(UsageError, match="no compiled agent"):
            where.load(plain_bundle().hash)
    assert Store(tmp_path / "nowhere").hashes() == ()
    assert store.provenance(plain_bundle().hash) == {}


def test_a_hash_is_found_by_its_beginning(store):
    digits = BUNDLE.hash.removeprefix("sha256:")
    for beginning in (digits[:6], digits, f"sha256:{digits[:8]}", f"sha256-{digits}", digits[:6].upper()):
        assert store.find(beginning) == BUNDLE.hash
    for beginning in ("", digits[:5], "xyzxyz", "000000", f"{digits}0", "../../etc"):
        with pytest.raises(UsageError):
            store.find(beginning)


def test_two_that_begin_alike_are_told_apart(tmp_path, monkeypatch):
    store = Store(tmp_path / "agents")
    both = ("sha256:" + "a" * 64, "sha256:" + "a" * 63 + "b")
    monkeypatch.setattr(store, "hashes", lambda: both)
    with pytest.raises(UsageError, match="more than one"):
        store.find("aaaaaa")
    assert store.find("a" * 63 + "b") == both[1]


def test_many_savers_at_once_leave_one_whole_bundle(tmp_path):
    store = Store(tmp_path / "agents")
    threads = [threading.Thread(target=store.save, args=(BUNDLE,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.load(BUNDLE.hash) == BUNDLE
    assert len(list((tmp_path / "agents").iterdir())) == 1


def test_a_write_that_fails_leaves_nothing(tmp_path, monkeypatch):
    def full(*_):
        raise Unfit("unreadable", "cannot be used (No space left on device)")

    monkeypatch.setattr(Folder, "write_new", full)
    with pytest.raises(LymaError, match="No space left"):
        Store(tmp_path / "agents").save(BUNDLE)
    assert list((tmp_path / "agents").iterdir()) == []


def test_a_provenance_that_is_no_object_is_nothing(store, place):
    beside = place.parent / f"{place.name}.provenance.json"
    for content in (b"[]", b"{", b"\xff"):
        beside.write_bytes(content)
        assert store.provenance(BUNDLE.hash) == {}


def test_what_is_removed_is_gone_with_all_that_lies_beside_it(store, place):
    agreed = []
    store.remove(BUNDLE.hash, lambda: agreed.append(place.exists()))
    assert (agreed, list(place.parent.iterdir()), store.hashes()) == ([True], [], ())
    with pytest.raises(UsageError, match="There is no compiled agent"):
        store.remove(BUNDLE.hash, lambda: agreed.append("again"))
    with pytest.raises(UsageError):
        store.remove("sha256:..", lambda: agreed.append("again"))
    assert agreed == [True]


def test_what_is_in_use_is_not_removed(store, place):
    other = Store(place.parent)
    with store.in_use(BUNDLE.hash), other.in_use(BUNDLE.hash):
        with pytest.raises(UsageError, match="runs just now"):
            other.remove(BUNDLE.hash, pytest.fail)
        assert store.load(BUNDLE.hash) == BUNDLE
    with pytest.raises(UsageError, match="being removed"):
        store.remove(BUNDLE.hash, lambda: other.in_use(BUNDLE.hash).__enter__())
    assert store.load(BUNDLE.hash) == BUNDLE
    store.remove(BUNDLE.hash, lambda: None)
    with store.in_use(BUNDLE.hash), pytest.raises(UsageError, match="There is no compiled agent"):
        store.load(BUNDLE.hash)


def test_what_cannot_be_agreed_to_is_not_removed(store):
    def refuse():
        raise LymaError("The log cannot be written.")

    with pytest.raises(LymaError, match="log"):
        store.remove(BUNDLE.hash, refuse)
    assert store.load(BUNDLE.hash) == BUNDLE


@pytest.mark.parametrize("damage", ["file", "link", "changed"])
def test_what_is_damaged_is_removed_and_nothing_behind_it(store, place, tmp_path, damage):
    beside = tmp_path / "beside"
    beside.mkdir()
    (beside / "kept").touch()
    place.chmod(0o755)
    if damage == "changed":
        (place / "link").symlink_to(beside)
    else:
        place.rename(tmp_path / "moved")
        place.touch() if damage == "file" else place.symlink_to(beside)
    store.remove(BUNDLE.hash, lambda: None)
    assert list(place.parent.iterdir()) == []
    assert (beside / "kept").exists()
