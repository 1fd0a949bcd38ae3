"""What an agent, its model or its author makes to take for ever is refused or done with soon: the parent has other things to do.

Each of these took from many seconds to hours. They are given enough time for a slow machine, and far less than that.
"""

from __future__ import annotations

import random
import time
from contextlib import contextmanager

import pytest
from jsonschema import Draft202012Validator

from lyma_server.factory.fitting import UNCHECKED, complaints, read_answer
from lyma_server.factory.patch import MOST_LINES, patch_of
from tests.agents import TOOL, bundle, codes, examined
from tests.fake_child import FakeSandbox
from tests.run_desk import Desk, own_staging, quick_disk

__all__ = ["own_staging", "quick_disk"]

ENOUGH_S = 5.0
FENCE = "`" * 3


@contextmanager
def soon():
    begun = time.process_time()
    yield
    assert time.process_time() - begun < ENOUGH_S


def held(**items):
    return {"type": "object", "properties": {"a": {"type": "array", **items}}}


HOSTILE = {
    "unique": (held(uniqueItems=True), [{"x": number} for number in range(8000)]),
    "mixed": (held(uniqueItems=True), [each for number in range(8000) for each in (number, str(number))]),
    "any": (held(items={"anyOf": [{"type": "string", "enum": list(map(str, range(50)))}] * 100}), [1] * 9000),
    "wrong": (held(items={"type": "string"}), [1] * 300_000),
    "names": (held(items={"properties": {f"p{number}": {} for number in range(1000)}}), [{}] * 20_000),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_an_output_is_held_to_its_schema_soon(name):
    schema, value = HOSTILE[name]
    with soon():
        found = complaints(schema, {"a": value})
    assert found if name in {"any", "wrong", "names"} else not found


def test_what_cannot_be_checked_does_not_fit():
    assert complaints(held(items={"type": "integer"}), {"a": [1] * 300_000}) == UNCHECKED
    deep = []
    for _ in range(20_000):
        deep = [deep]
    assert complaints(held(uniqueItems=True), {"a": [deep]}) == UNCHECKED


def test_it_is_the_verdict_of_json_schema():
    chance = random.Random(7)
    scalars = [0, 1, 1.0, True, False, None, "", "x", "1"]

    def value(depth=0):
        kind = chance.randrange(4 if depth < 3 else 1)
        if kind == 1:
            return [value(depth + 1) for _ in range(chance.randrange(4))]
        return (
            {name: value(depth + 1) for name in "ab" if chance.random() < 0.6} if kind == 2 else chance.choice(scalars)
        )

    def schema(depth=0):
        inner = (lambda: schema(depth + 1)) if depth < 3 else dict
        rules = {
            "type": lambda: chance.choice(["array", "object", "integer", "string", "number", ["null", "boolean"]]),
            "anyOf": lambda: [inner() for _ in range(chance.randrange(1, 3))],
            "uniqueItems": lambda: chance.random() < 0.7,
            "items": inner,
            "properties": lambda: {"a": inner(), "b": inner()},
            "additionalProperties": lambda: chance.random() < 0.5,
            "required": lambda: ["a"],
            "enum": lambda: chance.sample(scalars, 3),
            "minItems": lambda: 2,
        }
        return {name: make() for name, make in rules.items() if chance.random() < 0.3}

    verdicts = set()
    for _ in range(500):
        wanted, given = schema(), value()
        fits = Draft202012Validator(wanted).is_valid(given)
        assert (complaints(wanted, given) == "") == fits, (wanted, given)
        verdicts.add(fits)
    assert verdicts == {True, False}


@pytest.mark.parametrize(
    ("text", "inner"),
    [
        (f"{FENCE}json\n[1]\n{FENCE}", [1]),
        (f" \n{FENCE}\n\n[1]\n \n  {FENCE} \n", [1]),
        (f"{FENCE}\n{FENCE}", f"{FENCE}\n{FENCE}"),
        (f"{FENCE}[1]{FENCE}", f"{FENCE}[1]{FENCE}"),
        (f"{FENCE}\n[1]\n{FENCE} more", f"{FENCE}\n[1]\n{FENCE} more"),
        ("[1]", [1]),
    ],
)
def test_a_fence_is_taken_off(text, inner):
    assert read_answer(text) == inner


def test_a_fence_that_never_ends_is_soon_given_up():
    with soon():
        assert isinstance(read_answer(f"{FENCE}\n" + "\n" * 1_000_000 + "x"), str)


async def test_an_output_that_is_too_long_is_not_held_to_anything(tmp_path, monkeypatch):
    def checked(*_):
        raise AssertionError("it was")

    monkeypatch.setattr("lyma_server.factory.conversation.complaints", checked)

    async def life(child):
        await child.hello()
        await child.result({"text": [1] * 50_000})

    desk = Desk(tmp_path, sandbox=FakeSandbox(life))
    assert (await desk.run(bundle())).status == "budget_exceeded"


def test_a_pile_of_marks_is_refused_before_it_is_put_in_order():
    pile = "a" + "\u0301\u0323" * 15_000
    with soon():
        found = [examined({"tools/count.py": f"{TOOL}# {pile}"}), examined(instructions=pile[:8000])]
    assert {code for each in found for code, _ in codes(each)} == {"hidden_character"}
    assert examined(instructions="a" + "\u0301" * 30).bundle


def test_what_begins_like_a_token_many_times_is_soon_looked_through():
    with soon():
        for _ in range(3):
            assert examined({"tools/count.py": f"{TOOL}#{'-eyJ' * 16_000}"}).bundle
    token = f"eyJ{'a' * 900}.{'b' * 5000}.{'c' * 43}"
    assert codes(examined(instructions=f"Use -{token}.")) == {("secret", "instructions")}


def test_many_files_that_are_hard_to_compare_are_soon_a_patch():
    def text(letter):
        return "".join(f"m{at}\n{letter}{at}\n" for at in range(MOST_LINES // 2)).encode()

    with soon():
        patch = patch_of([(f"f{number}", text("o"), text("n")) for number in range(40)])
    assert patch.count("\n+n7\n") == 40
    assert "\n m7\n" in patch
