"""`lyma doctor` before providers that are wrong in every way: it names each fault and what to do about it."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from lyma_server.router.listings import Probe
from lyma_server.terminal.diagnosis import findings_of
from tests.lyma import environment, run_lyma
from tests.private_network import AUTHORITY, Tunnel, server_tls
from tests.stub_provider import Reply, StubProvider, fail, html, refusing_url

KEY = "sk-doctor-0123456789abcdefghij"
REGION = {"error": {"code": "unsupported_country_region_territory", "message": "Country not supported"}}
PLANTED: dict[str, tuple[Reply | None, str, str]] = {
    "mistyped": (fail(401), "mistyped: key …ghij is not accepted at {url}", "check the key, the base URL and its region"),
    "misplaced": (html(404), "misplaced: has no such URL at {url}", "check the base URL"),
    "empty": (fail(402), "empty: key …ghij has no credit left", "add credit, then `lyma keys wake`, or another key"),
    "abroad": (fail(403, REGION), "abroad: refuses this region or address at {url}", "use a provider that serves your region"),
    "elsewhere": (html(200), "elsewhere: sent what is not an answer", "something else may answer there"),
    "outdated": (None, "outdated answers but does not list stub-modle", "providers.outdated.model MODEL, for example stub-model"),
}  # fmt: skip
"""Provider, how its list of models fails, what is said of it, and the remedy."""


def configured(name: str, url: str, model: str = "stub-model") -> dict[str, str]:
    prefix = f"LYMA_PROVIDERS__{name.upper()}__"
    return {f"{prefix}BASE_URL": url, f"{prefix}MODEL": model, f"{prefix}KEYS": KEY}


def doctor(**variables: str) -> tuple[int, list[tuple[str, str]]]:
    """The exit code, and each line with the remedy below it."""
    result = run_lyma("doctor", env=environment(**variables))
    assert result.stderr == ""
    assert KEY not in result.stdout
    found: list[tuple[str, str]] = []
    for line in result.stdout.splitlines():
        if line.startswith("      "):
            found[-1] = (found[-1][0], line.strip())
        else:
            found.append((line, ""))
    return result.returncode, found


def named(found: list[tuple[str, str]], text: str) -> str:
    """The remedy of the one finding that says `text`."""
    (remedy,) = [remedy for line, remedy in found if text in line]
    return remedy


def test_each_planted_fault_is_named_with_its_remedy():
    names = [*PLANTED, "silent", "untrusted", "kimi"]
    with ExitStack() as stack:
        stubs = {
            name: stack.enter_context(StubProvider([], listing=listing)) for name, (listing, _, _) in PLANTED.items()
        }
        untrusted = stack.enter_context(StubProvider([], host="127.0.0.2", tls=server_tls()))
        kimi = stack.enter_context(StubProvider([], listing=fail(401), tls=server_tls()))
        tunnel = stack.enter_context(Tunnel(kimi.port))
        variables = {
            "LYMA_ORDER": ",".join(names),
            "MOONSHOT_API_KEY": KEY,
            "SSL_CERT_FILE": AUTHORITY,
            "HTTPS_PROXY": tunnel.url,
            "NO_PROXY": "127.0.0.2",
            **configured("silent", refusing_url()),
            **configured("untrusted", untrusted.openai_url),
        }
        for name, stub in stubs.items():
            variables |= configured(name, stub.openai_url, "stub-modle" if name == "outdated" else "stub-model")
        code, found = doctor(**variables)
    assert code == 1
    for name, (_, text, remedy) in PLANTED.items():
        assert remedy in named(found, text.format(url=stubs[name].openai_url))
    assert "check that it runs" in named(found, "silent: could not be reached at http://127.0.0.1:")
    assert "SSL_CERT_FILE" in named(
        found, f"untrusted: has a certificate that could not be verified at {untrusted.openai_url}"
    )
    remedy = named(found, "kimi: key …ghij is not accepted at https://api.moonshot.ai/v1")
    assert "keys for https://api.moonshot.cn/v1 do not work at https://api.moonshot.ai/v1" in remedy
    assert tunnel.hosts == ["api.moonshot.ai:443"]
    assert not any(stub.requests for stub in (*stubs.values(), kimi, untrusted))


@pytest.mark.parametrize("ending", [".invalid", None])
def test_no_network_is_told_from_one_provider_that_is_down(ending):
    """Hosts that no name server knows, or a proxy that is not there."""
    variables = {"LYMA_ORDER": "openai,deepseek", "OPENAI_API_KEY": KEY, "DEEPSEEK_API_KEY": KEY}
    if ending is None:
        variables["HTTPS_PROXY"] = refusing_url()
    else:
        variables |= {**configured("openai", "https://one.invalid/v1"), **configured("deepseek", "https://two.invalid")}
    code, found = doctor(**variables)
    assert code == 1
    assert "HTTPS_PROXY" in named(found, "no provider beyond this machine can be reached")
    for name in ("openai", "deepseek"):
        assert named(found, f"bad   {name}: ")


def test_a_local_server_that_is_down_is_no_missing_network():
    down = [Probe(name, None, "connect_error", "could not be reached", url) for name, url in LOCAL.items()]
    assert [finding.text for finding in findings_of(down)] == ["one: could not be reached", "two: could not be reached"]


LOCAL = {"one": "http://127.0.0.1:8080/v1", "two": "http://localhost:11434/v1"}


def test_what_is_wrong_with_a_provider_is_said_once_and_what_is_wrong_with_a_key_for_each():
    def of_each(class_: str) -> list[str]:
        probes = [Probe("one", key, class_, "words", "https://one.example") for key in ("…1", "…2")]
        return [finding.text for finding in findings_of(probes)]

    assert of_each("wrong_url") == ["one: words"]
    assert of_each("auth_invalid") == [f"one: key {key} is not accepted at https://one.example" for key in ("…1", "…2")]
