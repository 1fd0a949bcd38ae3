"""Every setting there is, with its type, default and meaning.

This is the only place that knows them: the loader, the variables, `lyma config show`, the reference and the VS Code
settings are made from these classes. There is no setting for the blacklist.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import attrs

from lyma_server.secret import Secret, as_secret

if TYPE_CHECKING:
    from collections.abc import Callable


def described(
    default: Any = attrs.NOTHING, doc: str = "", *, factory: Callable[[], object] | None = None, least: int = 1
) -> Any:
    """A field with its meaning in one sentence; `least` is the smallest whole number that it takes."""
    metadata = {"doc": doc, "least": least}
    if factory is not None:
        return attrs.field(factory=factory, metadata=metadata)
    return attrs.field(default=default, metadata=metadata)


@attrs.frozen(kw_only=True)
class KeySettings:
    """A key of a provider: `sk-…`, `env:NAME` or `cmd:COMMAND` (its output, trimmed)."""

    value: Secret = attrs.field(converter=as_secret, metadata={"doc": "The key, or env:NAME, or cmd:COMMAND."})
    account: str | None = described(None, "Keys of one account share its limits.")


@attrs.frozen(kw_only=True)
class ProviderSettings:
    api: Literal["openai", "anthropic", "embedded"] = described("openai", "The wire format it speaks.")
    base_url: str | None = described(
        None, "Where it is: an address, or `unix:` and the path of a socket; a known provider has a default."
    )
    model: str | None = described(None, 'The model to ask; "auto" takes the first that the server lists.')
    keys: tuple[KeySettings, ...] = described((), "Its keys, tried in turn.")
    fast: str | None = described(None, "The model for agents that ask for a fast one.")
    balanced: str | None = described(None, "The model for agents that ask for a balanced one.")
    strong: str | None = described(None, "The model for agents that ask for a strong one.")
    context_tokens: int | None = described(None, "Size of the model's window in tokens, where it is not known.")
    max_output_tokens: int | None = described(None, "The longest answer to ask for, in tokens.")
    gguf: str | None = described(None, "Only for the embedded provider: a model file.")


@attrs.frozen(kw_only=True)
class RouterSettings:
    rotation: Literal["on-failure", "every-call"] = described("on-failure", "When to move on to a provider's next key.")
    deadline_s: int = described(600, "The longest that one model call may take with all its attempts, in seconds.")
    first_content_s: int = described(120, "The longest wait for the first content, in seconds.")
    first_content_thinking_s: int = described(600, "The same for a model that thinks first.")
    between_content_s: int = described(60, "The longest silence inside an answer, in seconds.")
    connect_s: int = described(10, "The longest wait for a connection, in seconds.")
    daily_cap_micros: int | None = described(None, "The most to spend in a day, in integer USD micros.", least=0)


@attrs.frozen(kw_only=True)
class AgentSettings:
    confirm: Literal["never", "commands", "edits", "all"] = described("never", "What to ask a person about first.")
    max_steps: int = described(50, "Model calls in one turn.")
    instructions: tuple[str, ...] = described(
        ("AGENTS.md", "CLAUDE.md", ".github/copilot-instructions.md"),
        "Files in the workspace's root that instruct the agent; the first that exists is sent along.",
    )


@attrs.frozen(kw_only=True)
class ExecutorSettings:
    write: Literal["workspace", "everywhere"] = described("workspace", "Where commands may write.")
    writable: tuple[str, ...] = described((), "More folders where commands may write.")
    timeout_s: int = described(600, "The longest that a command in the foreground may run, in seconds.")
    output_limit: int = described(65536, "The most output of a command that the model is shown, in bytes.")
    sockets: tuple[str, ...] = described((), "Sockets that commands may reach; whoever may speak there may approve.")
    pass_env: tuple[str, ...] = described((), "Variables to hand to commands although they look like secrets.")


@attrs.frozen(kw_only=True)
class CeilingSettings:
    """The most that the specification of an agent may ask for."""

    max_turns: int = described(50, "Model calls.")
    max_tool_calls: int = described(500, "Tool calls.")
    max_tokens: int = described(1_000_000, "Tokens, in and out.")
    max_cost_micros: int = described(5_000_000, "Integer USD micros.")
    wall_s: int = described(1800, "Seconds.")
    cpu_s: int = described(600, "Seconds of processor time.")
    memory_mb: int = described(1024, "Memory in MiB.")
    scratch_mb: int = described(256, "Scratch space in MiB.")
    processes: int = described(8, "Processes.")
    max_output_tokens: int = described(32_768, "Tokens in one answer of the model.")
    max_files: int = described(20_000, "Files that may be read.")
    max_read_bytes: int = described(256 << 20, "Bytes of files that may be read.")
    max_write_bytes: int = described(16 << 20, "Bytes of files that may be written.")
    max_output_bytes: int = described(1 << 20, "Bytes of the result.")


@attrs.frozen(kw_only=True)
class ExternalSettings:
    """What each draft or compilation by the external factory may use up."""

    model: Literal["fast", "balanced", "strong"] = described("balanced", "How able the model that it may ask must be.")
    max_output_tokens: int = described(8192, "Tokens in one answer of the model.")
    max_turns: int = described(20, "Model calls.")
    max_tokens: int = described(400_000, "Tokens, in and out.")
    max_cost_micros: int = described(1_000_000, "Integer USD micros.")
    wall_s: int = described(300, "Seconds.")
    cpu_s: int = described(120, "Seconds of processor time.")
    memory_mb: int = described(1024, "Memory in MiB.")
    scratch_mb: int = described(64, "Scratch space in MiB.")
    processes: int = described(8, "Processes and threads.")


@attrs.frozen(kw_only=True)
class FactorySettings:
    mode: Literal["native", "external"] = described("native", "Who drafts and compiles agents.")
    command: tuple[str, ...] = described((), "The external factory, with its arguments.")
    tree: str | None = described(None, "The folder of the external factory; hashed and approved whole.")
    external: ExternalSettings = described(ExternalSettings(), "The most that the external factory may use up.")
    ceiling: CeilingSettings = described(CeilingSettings(), "The most that a specification may ask for.")


@attrs.frozen(kw_only=True)
class SessionsSettings:
    keep_days: int = described(90, "Sessions, and runs of agents, older than this many days are removed.")


@attrs.frozen(kw_only=True)
class FolderSettings:
    path: str = described(doc="A folder; a leading ~ is the home.")
    order: tuple[str, ...] = described(doc="The only providers that work in it may be sent to, in order.")


@attrs.frozen(kw_only=True)
class Settings:
    """All of it. An empty `order` means: every provider that has a key, in the order of the presets."""

    order: tuple[str, ...] = described((), "Providers in the order of fallback.")
    providers: dict[str, ProviderSettings] = described(doc="Providers by name.", factory=dict)
    router: RouterSettings = described(RouterSettings(), "How model calls are routed.")
    agent: AgentSettings = described(AgentSettings(), "The main agent.")
    executor: ExecutorSettings = described(ExecutorSettings(), "Commands; never the blacklist.")
    factory: FactorySettings = described(FactorySettings(), "Sub-agents.")
    sessions: SessionsSettings = described(SessionsSettings(), "Sessions on disk.")
    folders: tuple[FolderSettings, ...] = described((), "Folders that are pinned to providers.")
