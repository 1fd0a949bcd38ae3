"""The VS Code client: its own tests and checks, what it is packed into, and its manifest."""

from __future__ import annotations

import json
import re
import zipfile

import pytest

from tests.editors import vscode_package
from tests.editors.vscode_package import CLIENT, npm

LIMIT_BYTES = 1_000_000
LINE_LIMIT = 2_500  # lines that hold something, webview included


@pytest.fixture(scope="module", autouse=True)
def _installed() -> None:
    vscode_package.install()


def manifest() -> dict:
    return json.loads((CLIENT / "package.json").read_text())


def production_packages() -> dict[str, str]:
    """The packages that are no tools, with their versions, as the lock file has them."""
    locked = json.loads((CLIENT / "package-lock.json").read_text())["packages"]
    return {
        name.rpartition("node_modules/")[2]: each["version"]
        for name, each in locked.items()
        if name and not each.get("dev")
    }


def sources() -> dict[str, str]:
    return {str(path.relative_to(CLIENT)): path.read_text() for path in sorted((CLIENT / "src").rglob("*.ts"))}


def test_the_logic_holds() -> None:
    shown = npm("test")
    passed = re.search(r"# pass (\d+)", shown)
    assert passed
    assert int(passed[1]) > 50
    assert "# fail 0" in shown
    assert "# skipped 0" in shown


def test_types_style_and_format_hold() -> None:
    npm("run", "check")


def test_the_code_stays_small_and_thin() -> None:
    written = {name: text for name, text in sources().items() if not name.endswith(".gen.ts")}
    assert sum(bool(line.strip()) for text in written.values() for line in text.splitlines()) <= LINE_LIMIT
    for name, text in written.items():
        assert not re.search(r"writeFile|createHash|appendFile|mkdir|unlink|createWriteStream", text), name
        assert not re.search(r"\b(openai|anthropic|deepseek|qwen|kimi|moonshot)\b", text, re.IGNORECASE), name
        assert ('from "vscode"' in text) == (name == "src/vscodeapi.ts"), name


def test_the_lock_file_names_no_registry() -> None:
    assert '"resolved"' not in (CLIENT / "package-lock.json").read_text()


def test_the_packages_that_go_along_are_these() -> None:
    """Two are named, the rest comes with them; none runs a script when it is installed, each is pinned by its hash."""
    given = json.loads((CLIENT / "package.json").read_text())["dependencies"]
    assert set(given) == {"markdown-it", "vscode-languageclient"}
    assert set(production_packages()) == {
        "argparse", "balanced-match", "brace-expansion", "entities", "linkify-it", "markdown-it", "mdurl", "minimatch",
        "punycode.js", "semver", "uc.micro", "vscode-jsonrpc", "vscode-languageclient", "vscode-languageserver-protocol",
        "vscode-languageserver-textdocument", "vscode-languageserver-types",
    }  # fmt: skip
    locked = json.loads((CLIENT / "package-lock.json").read_text())["packages"]
    for name, each in locked.items():
        assert not name or each.get("integrity", "").startswith("sha512-"), name
        assert each.get("dev") or not each.get("hasInstallScript"), name


def test_settings_are_few_and_nobodys_but_the_persons() -> None:
    settings = manifest()["contributes"]["configuration"]["properties"]
    assert set(settings) == {"lyma.server.path", "lyma.chat.showThinking"}
    assert {each["scope"] for each in settings.values()} == {"machine"}
    assert manifest()["capabilities"]["untrustedWorkspaces"]["supported"] is False
    assert manifest()["extensionKind"] == ["workspace"]


def test_the_version_is_that_of_the_server() -> None:
    from lyma_server import __version__

    assert manifest()["version"] == __version__


@pytest.mark.full
def test_the_package_is_small_and_whole() -> None:
    path = vscode_package.package()
    assert path.stat().st_size < LIMIT_BYTES
    with zipfile.ZipFile(path) as packed:
        notices = packed.read("extension/dist/NOTICES.txt").decode()
        names = set(packed.namelist())
        bundle = packed.read("extension/dist/extension.js").decode()
    assert any(re.fullmatch(r"extension/server/lyma-.*\.whl", name) for name in names)
    assert {"extension/LICENSE.txt", "extension/media/icon.png", "extension/readme.md"} <= names
    assert not [name for name in names if "node_modules" in name or name.endswith((".ts", ".map"))]
    assert "lyma/requestApproval" in bundle
    bundled = dict(re.findall(r"^(\S+) (\d+\.\d+\.\d+) \([\w.-]+\)$", notices, re.MULTILINE))
    assert {"markdown-it", "vscode-languageclient"} <= bundled.keys()
    assert bundled.items() <= production_packages().items()
    assert notices.count("Copyright") >= len(bundled) - 1  # one license names its people elsewhere
