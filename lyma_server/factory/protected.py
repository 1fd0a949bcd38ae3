"""Names that no agent reaches, whatever its globs say.

What protects is that nothing of these ever matches (`is_protected`); that a glob which names one is refused when it is
compiled only tells its author in time.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

NEVER: Final = (
    # version control, Lyma, the environment
    ".git", ".hg", ".svn", ".gitconfig", ".gitmodules", ".githooks", ".husky", ".lyma", ".env", ".env*", ".envrc", ".direnv",
    # keys and credentials
    "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk", "*.asc", "*.gpg", "*.keytab",
    "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", ".ssh", ".gnupg", ".aws", ".azure", ".gcloud", ".kube", ".docker",
    ".netrc", "_netrc", ".pgpass", ".npmrc", ".pypirc", ".git-credentials", ".htpasswd", ".password-store", ".vault-token",
    "credentials", "credentials.json", "secrets.json", "secrets.y*ml", "secrets.toml", "service-account*.json", "*.tfstate", "*.tfvars",
    # settings of editors: some of them run programs
    ".vscode", ".vscode-server", ".idea", ".fleet", ".zed", ".helix", ".nvim", ".nvim.lua", ".nvimrc", ".vim", ".vimrc", ".exrc",
    ".emacs*", ".dir-locals*.el", ".sublime", "*.sublime-*", "*.code-workspace", ".editorconfig", ".devcontainer",
    # settings of agents
    ".claude*", ".cursor*", ".codex", ".gemini", ".copilot", ".aider*", ".continue*", ".windsurf*", ".roo*", ".cline*", ".kiro*", ".opencode*",
    ".amp*", ".augment*", ".junie", ".goose*", ".mcp*.json", "mcp.json", ".agents", ".clinerules",
)  # fmt: skip
"""Neither read nor written: patterns for one name in a path."""

NEVER_WRITTEN: Final = (
    "agents.md", "agents.override.md", "agent.md", ".rules", "lefthook.y*ml", ".lefthook*", ".gdbinit", ".lldbinit",
    "claude*.md", "gemini.md", "copilot-instructions.md", ".github", ".gitlab-ci.yml", ".gitlab", ".circleci",
    ".pre-commit-config.yaml", ".gitattributes", ".gitignore", ".profile", ".bashrc", ".bash_profile", ".zshrc", ".zshenv", "sitecustomize.py",
    "usercustomize.py", "*.pth",
)  # fmt: skip
"""What instructs other agents, or runs by itself."""

_SHORT_GIT: Final = re.compile(r"(?:git|lyma|env)~\d+")
"""How some file systems also call `.git` and its like."""


def is_protected(path: str, *, writing: bool) -> bool:
    """Whether a relative path leads through a protected name or cannot be trusted to be what it looks like."""
    return any(_is_odd(name) or _matches_any(folded(name), writing=writing) for name in path.split("/"))


def names_protected(pattern: str, *, writing: bool) -> bool:
    """Whether a pattern for one name in a path speaks of a protected one: it is one, or could be only such."""
    name = folded(pattern)
    if name.startswith("."):
        hidden = (each for each in NEVER + (NEVER_WRITTEN if writing else ()) if each.startswith("."))
        return any(_meet(name, each) for each in hidden)
    samples = [name.replace("*", filling).replace("?", "x") for filling in ("", "zq")]
    return all(_matches_any(sample, writing=writing) for sample in samples)


def folded(name: str) -> str:
    """`name` as file systems that are generous about case, form, dots and invisible characters take it."""
    if not name.isascii():
        name = "".join(letter for letter in unicodedata.normalize("NFKC", name) if unicodedata.category(letter) != "Cf")
    return unicodedata.normalize("NFC", name.casefold()).rstrip(". ")


def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(re.escape(pattern).replace(r"\*", ".*") for pattern in patterns))


_NEVER: Final = _any_of(NEVER)
_NEVER_WRITTEN: Final = _any_of((*NEVER, *NEVER_WRITTEN))


def _matches_any(name: str, *, writing: bool) -> bool:
    known = _NEVER_WRITTEN if writing else _NEVER
    return bool(_SHORT_GIT.fullmatch(name) or known.fullmatch(name))


def _is_odd(name: str) -> bool:
    """A name that file systems may take for another one."""
    return name in {"", ".", ".."} or name != name.rstrip(". ") or not name.isprintable() or "\\" in name or ":" in name


def _meet(pattern: str, other: str) -> bool:
    """Whether some name fits both patterns."""
    reached = {(0, 0)}
    seen: set[tuple[int, int]] = set()
    while reached:
        here = reached.pop()
        if here == (len(pattern), len(other)):
            return True
        if here not in seen:
            seen.add(here)
            reached |= _steps(pattern, other, here)
    return False


def _steps(pattern: str, other: str, here: tuple[int, int]) -> set[tuple[int, int]]:
    left, right = here
    one, two = pattern[left : left + 1], other[right : right + 1]
    steps = set()
    if one == "*":
        steps |= {(left + 1, right)} | ({(left, right + 1)} if two else set())
    if two == "*":
        steps |= {(left, right + 1)} | ({(left + 1, right)} if one else set())
    if one and two and (one == two or "?" in (one, two)):
        steps.add((left + 1, right + 1))
    return steps
