"""Words are expanded as bash expands them: the same texts through our evaluation and through the real shell."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lyma_server.executor.evaluation import Machine
from lyma_server.executor.places import find_places
from lyma_server.executor.world import start_world

HOME, WORKSPACE = "/home/dev", "/home/dev/app"
VARIABLES = {
    "x": "one",
    "y": "a b",
    "z": "",
    "path": "/usr/local/lib.tar.gz",
    "n": "x",
    "up": "MiXed",
    "star": "*",
    "num": "7",
}
BASH = shutil.which("bash") or ""

EMPTY = tempfile.mkdtemp()

pytestmark = pytest.mark.skipif(not BASH, reason="bash is not installed")


def ours(script: str) -> list[str]:
    """The arguments that `show` would be given, by our reading."""
    machine = Machine()
    world = start_world(find_places(HOME, WORKSPACE, f"{HOME}/.lyma"), "/nowhere", VARIABLES)
    machine.run_text(world, script, top=True)
    return [word for invocation in machine.invocations if invocation.program == "show" for word in invocation.arguments]


def real(script: str) -> list[str]:
    """The arguments that bash gives it."""
    define = 'show() { [ $# -gt 0 ] && printf "%s\\0" "$@"; }; unset OLDPWD\n'
    environment = {**VARIABLES, "HOME": HOME, "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
    result = subprocess.run(
        [BASH, "--noprofile", "--norc", "-c", define + script],
        env=environment, cwd=EMPTY, capture_output=True, timeout=10, check=False,
    )  # fmt: skip
    return result.stdout.decode("utf-8", "replace").split("\0")[:-1]


SCRIPTS = [
    "show a 'b c' \"d $x\" e\\ f", 'show $y "$y" $z "$z"', "show ${x} ${x:-no} ${nope:-yes} ${z:-empty} ${z-unset}", "show ${x:+set} ${z:+no}",
    "show ${path#*/} ${path##*/} ${path%.*} ${path%%.*}", "show ${path/local/x} ${path//\\//_} ${path/#\\/usr/U} ${path/%gz/G}",
    "show ${up^} ${up^^} ${up,} ${up,,}", "show ${#path} ${path:5} ${path:5:5} ${path: -2} ${path:0:-3}", 'show ${!n} "${!n}"',
    'show {a,b}{1,2} x{1..4} {d..a} {01..03} {1..9..3} {a} {} "{a,b}" {a,"b c"}', "show $'a\\tb' $'\\x41\\101\\u00e9' $\"q\"",
    'show ~ ~/x "~" ~root a~ x=~/y', "show $((1+2*3)) $((num % 4)) $((2**5)) $(( num > 3 && 1 ))", 'show $(echo a b) "$(echo a b)" `echo c`',
    "set -- p 'q r' s; show \"$@\" $# \"$*\" $2 \"${@:2}\"", 'set --; show "$@" x$@y "a$@b"', "a=(1 '2 3' 4); show \"${a[@]}\" ${#a[@]} \"${a[1]}\" ${a[-1]}",
    'a=(1 2); a+=(3); show "${a[*]}"', "declare -A m=([k]=v); show ${m[k]}", 'IFS=,; v=a,b,c; show $v "$v"', "v='a  b'; show $v", "show a\\\nb 'it'\\''s'",
    "f() { show \"$1\" $#; }; f 'x y' z", "for i in 1 2 3; do show $i; done", "for ((i=0;i<3;i++)); do show $i; done", "while read -r l; do show \"$l\"; done <<< $'a\\nb c'",
    "read -r a b <<< 'x y z'; show \"$a\" \"$b\"", "printf -v v '%s-%s' a b; show $v", "show $(printf '%s\\n' a b | rev | tr a-z b-za)", "show $(echo aGk= | base64 -d)",
    "show $(seq 3) $(basename /a/b.c .c) $(dirname /a/b)", "case abc in a*) show yes;; *) show no;; esac", "v=1; v+=2; show $v", "show ${z:=new} $z", "local_() { local x=in; show $x; }; local_; show $x",
    'show "${y//a/b c}"', "show ${nope} end", "show \"$x\"'$x'\"\\$x\"", "show $(echo 'a;b' | sed 's/;/,/')", "x=2; show $x $(x=3; echo $x) $x", 'v=$(cat <<E\na $x\nE\n); show "$v"',
    "v=$(cat <<'E'\na $x\nE\n); show \"$v\"", "show ${path:0:4}${path: -3:3}", 'show "${x}y" $x$y', 'v=(); show "${v[@]}" end', "show $(echo -n a; echo -e 'b\\tc')", "set -- a b c; shift; show $1 $#",
    'cd /usr/lib/..; show $PWD "$(pwd)"', "cd /usr; cd lib; cd - > /dev/null; show $PWD", "show $(tr '[:lower:]' '[:upper:]' <<< abc)", "eval 'show $x \"a b\"'", 'show ${star} "$star"', "alias q=show\nshow end",
    "export v=1 w='a b'; show $v \"$w\"", "unset x; show [$x]", "show $(cut -d: -f2 <<< a:b:c) $(head -n 1 <<< $'l1\\nl2')", "v='a b' w=$v; show \"$w\"", "show \"$(echo \"$(echo 'n e')\")\"",
]  # fmt: skip


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_gives_the_words_that_bash_gives(script):
    expected = real(script)
    assert [word.replace("\U0010ff10", "*") for word in ours(script)] == expected


PLAIN = st.sampled_from(["a", "b", "1", ".", "/", "-", "_", "é"])
NAME = st.sampled_from([*sorted(VARIABLES), "nope"])
PATTERN = st.sampled_from(["a", "*", "?", "*/", ".*", "[a-m]", "/usr", "one", "o*", "", "lib", "\\*"])
QUOTED = st.sampled_from(
    [
        "'a b'",
        "'$x'",
        '"a b"',
        '"$x"',
        '"$y"',
        '""',
        "''",
        "\\ ",
        '\\"',
        "\\$",
        "$'\\x41'",
        '"${y}"',
        '"~"',
        "'*'",
        '"\\$x\\""',
        "\\\\",
    ]
)
OPERATION = st.one_of(
    st.tuples(NAME, st.sampled_from(["#", "##", "%", "%%"]), PATTERN).map(lambda t: "${{{}{}{}}}".format(*t)),
    st.tuples(
        NAME, st.sampled_from(["/", "//", "/#", "/%"]), PATTERN.filter(bool), PLAIN.filter(lambda p: p != "/")
    ).map(lambda t: "${{{}{}{}/{}}}".format(t[0], t[1], t[2].replace("/", "\\/"), t[3])),
    st.tuples(NAME, st.sampled_from([":-", "-", ":+", "+"]), st.one_of(PLAIN, QUOTED)).map(
        lambda t: "${{{}{}{}}}".format(*t)
    ),
    st.tuples(NAME, st.integers(0, 6), st.integers(0, 4)).map(lambda t: "${{{}:{}:{}}}".format(*t)),
    st.tuples(NAME, st.sampled_from(["^", "^^", ",", ",,"])).map(lambda t: "${{{}{}}}".format(*t)),
    NAME.map(lambda name: "${#" + name + "}"),
    NAME.map(lambda name: "$" + name + "@"),
)
BRACE = st.sampled_from(["{a,b}", "{1..3}", "{x,}", "{a,{b,c}}", "{a}", "{'a b',c}", "{$x,d}", "{c..a}"])
PIECE = st.one_of(
    PLAIN,
    QUOTED,
    OPERATION,
    BRACE,
    st.just("$x"),
    st.just("$z"),
    st.just("$(echo $y)"),
    st.just('"$(echo $y)"'),
    st.just("$((num+1))"),
)
WORD = st.lists(PIECE, min_size=1, max_size=5).map("".join)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(WORD, min_size=1, max_size=3))
def test_random_words_expand_as_in_bash(words):
    script = "show " + " ".join(words)
    expected = real(script)
    assert [word.replace("\U0010ff10", "*").replace("\U0010ff11", "?") for word in ours(script)] == expected
