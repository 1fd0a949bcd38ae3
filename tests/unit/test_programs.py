"""What the kernel would make of the head of a file."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lyma_server.isolation.programs import NotAProgram, build_id, interpreter, read_head


@pytest.mark.parametrize(
    ("head", "words"),
    [
        (b"#!/bin/sh\n", ("/bin/sh",)),
        (b"#! /bin/sh\nrest", ("/bin/sh",)),
        (b"#!/usr/bin/env -S python3 -u\n", ("/usr/bin/env", "-S python3 -u")),
        (b"#!\t/bin/rm\t-rf  \n", ("/bin/rm", "-rf")),
        (b"#!/bin/sh", ("/bin/sh",)),
        (b"#!\n", ()),
        (b"#!   \n", ()),
        (b"#!/bin/sh\0-x\n", ("/bin/sh",)),
        (b"# !/bin/sh\n", ()),
        (b"\x7fELF", ()),
        (b"", ()),
        (b"#!/bin/sh " + b"x" * 400 + b"\n", ("/bin/sh", "x" * 245)),
    ],
)
def test_the_first_line_of_a_script(head, words):
    assert interpreter(head) == words


def test_it_is_what_the_kernel_does(tmp_path):
    """The control: the words that an interpreter really gets."""
    told = tmp_path / "told.py"
    told.write_text("import sys; print(sys.argv[1:])")
    for line in (b"#!%b %b\n", b"#! %b \t %b \t\n", b"#!%b %b"):
        script = tmp_path / "script"
        script.write_bytes(line % (os.fsencode(sys.executable), os.fsencode(told)))
        script.chmod(0o755)
        words = interpreter(script.read_bytes())
        said = subprocess.run([script, "a"], capture_output=True, text=True, check=True).stdout
        assert (words, said) == ((sys.executable, str(told)), f"['{script}', 'a']\n")


def test_a_long_line_is_cut_where_the_kernel_cuts_it(tmp_path):
    told = tmp_path / "told"
    told.write_bytes(b"#!" + os.fsencode(shutil.which("echo")) + b" " + b"x" * 400 + b"\n")
    told.chmod(0o755)
    said = subprocess.run([told], capture_output=True, text=True, check=True).stdout
    assert said == f"{interpreter(told.read_bytes())[1]} {told}\n"


@pytest.mark.skipif(sys.platform != "linux", reason="needs ELF programs")
def test_the_build_of_a_program_is_that_of_its_copy(tmp_path):
    cat = shutil.which("cat")
    copy = tmp_path / "copy"
    shutil.copy(cat, copy)
    with copy.open("ab") as more:
        more.write(b"more")
    builds = []
    for path in (cat, copy, shutil.which("ls")):
        file = os.open(path, os.O_PATH)
        builds.append(build_id(read_head(file, os.fstat(file))))
        os.close(file)
    assert len(builds[0]) == 20
    assert builds[0] == builds[1] != builds[2]


def test_the_build_is_found_in_32_bits_too():
    note = struct.pack(">III", 4, 8, 3) + b"GNU\0" + b"identity"
    head = bytearray(b"\x7fELF\x01\x02" + bytes(250))
    struct.pack_into(">I", head, 28, 64)
    struct.pack_into(">HH", head, 42, 32, 1)
    struct.pack_into(">IIIIII", head, 64, 4, 128, 0, 0, len(note), 0)
    head[128 : 128 + len(note)] = note
    assert build_id(bytes(head)) == b"identity"


@given(st.binary(max_size=300).map(lambda rest: b"\x7fELF\x02\x01" + rest))
def test_broken_programs_break_nothing(head):
    assert isinstance(build_id(head), bytes)


@pytest.mark.skipif(sys.platform != "linux", reason="needs O_PATH")
def test_only_regular_files_are_programs(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        file = os.open(path, os.O_PATH)
        with pytest.raises(NotAProgram):
            read_head(file, os.fstat(file))
        os.close(file)
