"""Strings that a reader of commands may choke on: deep, long, broken, odd. The same thousand every time."""

from __future__ import annotations

import random

LIMIT = 64 * 1024


def nested() -> list[str]:
    openers = [("(", ")"), ("{ ", ";}"), ("$(", ")"), ("`", "`"), ('"$(', ')"'), ("${x:-", "}"), ("$((", "))"), ("<(", ")"), ("[", "]"), ("{a,", "}"),
               ("if ", "; then :; fi"), ("while ", "; do :; done"), ("! ", ""), ("@(", ")"), ("case x in x) ", ";; esac"), ("f() { ", "; }"),
               ("eval ", ""), ("sh -c '", "'"), ("env ", ""), ("sudo ", "")]  # fmt: skip
    return [
        opener * depth + "rm -rf /" + closer * depth for opener, closer in openers for depth in (3, 30, 61, 300, 2000)
    ]


def long_ones() -> list[str]:
    units = ["a", "a ", "a;", "a|", "a&&", "$x", "${x}", "$(a)", "{a,b}", "*", "?", "[a-z]", "'a'", '"a"', "\\a", "<<a\n", "~", "a=b ", ">a ", "#", "\n",
             "/", "../", "\\\n", "$'\\x61'", "é", "日", "{1..9}", "!", "&", "x=$x$x;", "f() { f; };", "echo a|", "a*b*", "cd x;", ": ${x:=a};", "$((1+"]  # fmt: skip
    return [
        (unit * (LIMIT // len(unit.encode()) + extra))[: size or None]
        for unit in units
        for extra, size in ((-1, 0), (2, 0), (0, 4000))
    ]


def explosive() -> list[str]:
    return [
        "echo " + "{a,b}" * 20,
        "echo " + "{a,b}" * 2000,
        "echo {1..1000000000}",
        "echo {1..9}" * 9,
        "x=a; " + "x=$x$x; " * 40 + "echo $x",
        "for a in 1 2 3 4 5 6 7 8 9; do " * 8 + "echo $a" + "; done" * 8,
        "f() { f; f; }; f",
        "f() { g; g; }; g() { f; f; }; f",
        "f() { f $1$1; }; f a",
        "while true; do x=$x/..; done; rm -rf $x",
        "if a; then x=1$x; else x=2$x; fi;" * 60 + "rm $x",
        "a=(" + "x " * 3000 + '); for i in "${a[@]}"; do for j in "${a[@]}"; do rm $i$j; done; done',
        "echo " + "*a" * 300 + "b",
        "case " + "a" * 3000 + " in " + "*a" * 300 + "*b) ls;; esac",
        "x=" + "a" * 3000 + "; echo ${x//" + "*a" * 50 + "*b/}",
        "(" * 32000 + ")" * 32000,
        "{ " * 16000 + ";}" * 16000,
        "x=" + "a" * 3000 + "; echo ${x%%" + "*a" * 50 + "*b}",
        "sudo " * 12000 + "rm -rf ~",
        "ruby -rsocket -e '" + "TCPSocket $stdin.reopen " * 2500 + "'",
        "seq 1000000 | xargs rm",
        "printf '%1000000000d' 1 | sh",
        "printf '%s' {1..9999} | sh",
        "echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa | sed 's/(a*)*b//' | sh",
        "echo $((2**9999999))",
        "echo $((9" + "9" * 5000 + "))",
        "python3 -c \"x='a'*10**12\"",
        "python3 -c '" + "(" * 500 + ")" * 500 + "'",
        "python3 -c '" + "[" * 90 + "]" * 90 + "'",
        "python3 -c 'x=[" + "0," * 20000 + "]'",
        "python3 -c 'for i in range(10**9):\n for j in range(10**9):\n  print(i,j)'",
        "python3 -c 'def f(x): return f(x)+f(x)\nf(1)'",
        "node -e '" + "a(" * 3000 + "'",
        "node -e 'system(" + '"a"+' * 5000 + "\"b\")'",
        "perl -e '" + "`a`" * 3000 + "'",
        "awk '" + '{ system("a") }' * 1000 + "'",
        "find . " + "\\( -name a -o -name b \\) " * 20 + "-delete",
        "find . " + "\\( " * 400 + "-name a " + "\\) " * 400 + "-delete",
        "bash -c " + "'bash -c " * 30 + "ls",
        "alias a='a a'\na a a",
        "alias a=b; alias b=a\na",
        "x='$x'; eval eval eval $x",
        "x='eval \"$x\"'; eval \"$x\"",
        "exec 3<&3 4<&4; ls <&3 >&4",
        "trap 'trap \"trap ls EXIT\" EXIT' EXIT",
        "cat <<" + "A <<".join("ABCDEFGH") + "\n",
        "git config alias.x '!git x'; git x",
        "echo 'sh x' > x; sh x",
        "echo '. ./x; . ./x' > x; . ./x",
        "env -S 'env -S \"env -S ls\"'",
        "xargs xargs xargs xargs rm",
    ]  # fmt: skip


def broken() -> list[str]:
    return ["", " ", "\n", "'", '"', "`", "$(", "${", "((", "[[", "{", "}", "(", ")", ";;", "&&", "|", "<", "<<", ">&", "$", "\\", "if", "fi", "do", "f()",
            "rm -rf '/", 'rm -rf "/', "rm -rf $(", "\0", "rm\0 -rf /", "a\rb", "\ud800", "\udfff rm", chr(0x10FF00), chr(0x10FF10) + "rm -rf /", "\x1b[2J",
            "\u202erm", "rm\u00a0-rf", "\ufeff", "é" * 100, "\U0001f600" * 1000, "a" * LIMIT, "a" * (LIMIT + 1), "é" * LIMIT, "<<E\n", "x=(", "a[", "${x[", "$[1+1]"]  # fmt: skip


def scrambled(count: int) -> list[str]:
    """Random pieces of shell, put together without sense."""
    pieces = ["rm", "-rf", "/", "~", "$HOME", "$(", ")", "`", "'", '"', "|", "&", ";", "\n", "{", "}", "(", "<<E", "E", "<", ">", "if", "then", "fi", "for",
              "in", "do", "done", "case", "esac", "${x", "}", "[[", "]]", "((", "))", "\\", "*", "?", "=", "x", "eval", "echo", "sh -c", "é", "\t", "$'\\x6", "!", "#"]  # fmt: skip
    chance = random.Random(20240)
    return [chance.choice((" ", "")).join(chance.choices(pieces, k=chance.randint(1, 60))) for _ in range(count)]


def all_strings(count: int = 1000) -> list[str]:
    fixed = [*nested(), *long_ones(), *explosive(), *broken()]
    return fixed + scrambled(count - len(fixed))
