"""The environment of a command: the user's own, without secrets and without what would make a shell run something first."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

ALWAYS_GONE: Final = frozenset({"BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "LD_PRELOAD", "LD_AUDIT"})
"""They change what a command means after it was judged. No setting lets them through."""

ALWAYS_GONE_BEGINNINGS: Final = ("BASH_FUNC_", "LYMA_")
"""Functions of a shell, which would take the place of programs; and our own settings, which may hold keys."""

LOOKS_SECRET: Final = re.compile(
    r"(?:^|_)(?:API_?KEYS?|ACCESS_KEY|SECRET_KEY|PRIVATE_KEY|SIGNING_KEY|ENCRYPTION_KEY|AUTH_?KEY|TOKENS?|SECRETS?|PASSWD|PASSPHRASE|CREDENTIALS?)"
    r"(?:_\d+)?$|SECRET_ACCESS_KEY|PASSWORD|.+_PWD$|.+APIKEY$|.+(?<!_)TOKEN$",
    re.IGNORECASE,
)
"""Names of variables by which people keep secrets."""

NOT_SECRET: Final = frozenset({"OLDPWD", "GOOGLE_APPLICATION_CREDENTIALS"})
"""A folder, and the path of a file."""


def command_environment(
    environ: Mapping[str, str],
    *,
    key_variables: Iterable[str] = (),
    holds_secret: Callable[[str], bool] = lambda _value: False,
    passed: Iterable[str] = (),
) -> dict[str, str]:
    """What a command is given of `environ`. `key_variables` are those that hold configured keys, `holds_secret` knows the
    secrets by their value, and `passed` are the names that the user's settings let through all the same.
    """
    keys, wanted = frozenset(key_variables), frozenset(passed)
    return {
        name: value
        for name, value in environ.items()
        if not _is_always_gone(name)
        and (name in wanted or not (name in keys or looks_secret(name) or holds_secret(value)))
    }


def looks_secret(name: str) -> bool:
    """Whether a variable of this name is likely to hold a secret."""
    return name not in NOT_SECRET and LOOKS_SECRET.search(name) is not None


def _is_always_gone(name: str) -> bool:
    return name in ALWAYS_GONE or name.startswith(ALWAYS_GONE_BEGINNINGS)
