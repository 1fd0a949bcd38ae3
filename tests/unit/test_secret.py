"""A secret hides itself, however it is looked at."""

from __future__ import annotations

import copy
import hashlib
import json
import pickle

import pytest

from lyma_server.secret import Secret, as_secret

VALUE = "sk-proj-0123456789abcdefghijab21"


@pytest.mark.parametrize(
    "show",
    [repr, str, "{}".format, "{!r}".format, "{:>40}".format, lambda secret: f"{[secret]}"],
)
def test_no_text_form_gives_it_away(show):
    shown = show(Secret(VALUE))
    assert "Secret(hidden)" in shown
    assert not any(VALUE[i : i + 4] in shown for i in range(len(VALUE) - 3))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_it_is_never_pickled(protocol):
    with pytest.raises(TypeError, match="never pickled"):
        pickle.dumps({"key": Secret(VALUE)}, protocol)


def test_no_json_encoder_takes_it_by_accident():
    with pytest.raises(TypeError):
        json.dumps(Secret(VALUE))
    assert VALUE[8:] not in json.dumps(Secret(VALUE), default=str)


def test_it_has_no_attributes_to_list():
    with pytest.raises(TypeError):
        vars(Secret(VALUE))


def test_it_is_revealed_only_on_request():
    assert Secret(VALUE).reveal() == VALUE


@pytest.mark.parametrize(
    ("value", "masked"), [(VALUE, "…ab21"), ("a" * 12 + "wxyz", "…wxyz"), ("a" * 15, "…"), ("", "…")]
)
def test_masked_shows_four_characters_of_a_long_value_and_none_of_a_short_one(value, masked):
    assert Secret(value).masked == masked


def test_the_fingerprint_is_twelve_digits_of_the_hash():
    assert Secret(VALUE).fingerprint == hashlib.sha256(VALUE.encode()).hexdigest()[:12]


def test_equal_values_are_equal_secrets_and_nothing_else_is():
    assert Secret(VALUE) == Secret(VALUE)
    assert len({Secret(VALUE), Secret(VALUE)}) == 1
    assert Secret(VALUE) != Secret(VALUE + "x")
    assert Secret(VALUE) != VALUE


def test_a_copy_is_the_secret_itself():
    secret = Secret(VALUE)
    assert copy.copy(secret) is secret
    assert copy.deepcopy({"key": secret})["key"] is secret


def test_as_secret_hides_a_string_and_keeps_a_secret():
    secret = Secret(VALUE)
    assert as_secret(secret) is secret
    assert as_secret(VALUE) == secret
