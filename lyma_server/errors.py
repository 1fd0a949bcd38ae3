"""Every error that a user can meet, in one table.

The message of a LymaError is public: one sentence that says what happened, to what, and what to do next. `detail` is for
the log only. `data` travels on the wire beside `kind` and `retryable`. JSON-RPC codes lie outside the ranges that
JSON-RPC 2.0 and LSP 3.17 reserve. Exit codes: 1 error, 2 usage, 3 approval, 4 every provider failed, 130 cancelled.
"""

from __future__ import annotations

import errno
from typing import ClassVar, Final


class LymaError(Exception):
    """The root: anything that is raised on purpose and may be shown."""

    kind: ClassVar[str] = "internal_error"
    code: ClassVar[int] = -32603
    exit_code: ClassVar[int] = 1
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, detail: str = "", **data: object) -> None:
        """Keep `message` for everyone, `detail` for the log and `data` (JSON values, snake_case names) for the wire."""
        super().__init__(message)
        self.message = message
        self.detail = detail
        self.data = data


class UsageError(LymaError):
    """The command line or the request asks for something that does not exist."""

    kind, code, exit_code = "invalid_params", -32602, 2


class ConfigError(LymaError):
    """The configuration cannot be used; `data` may hold file, line and key."""

    kind, code = "config_error", -31010


class ProviderError(LymaError):
    """A provider did not answer; `data` holds the attempts."""

    kind, code, exit_code, retryable = "provider_error", -31006, 4, True


class AllFailed(ProviderError):
    """Every candidate failed before its first visible token."""


class StreamInterrupted(ProviderError):
    """An answer broke off after its first visible token; `partial` is what had been said."""

    def __init__(self, message: str, *, partial: str = "", detail: str = "", **data: object) -> None:
        super().__init__(message, detail=detail, **data)
        self.partial = partial


class CommandForbidden(LymaError):
    """The blacklist names this command; `data` holds the rule."""

    kind, code = "command_forbidden", -31008


class CommandTimeout(LymaError):
    """A command ran longer than it may."""

    kind, code, retryable = "command_timeout", -32603, True


class MaskUnavailable(LymaError):
    """Lyma's home could not be hidden from commands, so none runs; `data` holds the remedy."""

    kind, code = "mask_unavailable", -31015


class ApprovalRequired(LymaError):
    """A person has not yet approved this hash."""

    kind, code, exit_code = "approval_required", -31001, 3


class ApprovalUnavailable(LymaError):
    """Nobody could be asked."""

    kind, code, exit_code = "approval_unavailable", -31002, 3


class ApprovalDenied(LymaError):
    """A person said no."""

    kind, code, exit_code = "approval_denied", -31016, 3


class ApprovalExpired(LymaError):
    """The question was not answered in time, or the approval is too old."""

    kind, code, exit_code = "approval_expired", -31016, 3


class HashMismatch(LymaError):
    """What would run is not what was approved."""

    kind, code, exit_code = "hash_mismatch", -31016, 3


class SpecInvalid(LymaError):
    """An agent specification does not hold; `data` holds the diagnostics."""

    kind, code = "spec_invalid", -31005


class CompileFailed(LymaError):
    """An agent specification could not be compiled; `data` holds the diagnostics."""

    kind, code = "compile_failed", -31011


class SandboxUnavailable(LymaError):
    """No sandbox, no run; `data` holds the remedy."""

    kind, code = "sandbox_unavailable", -31012


class RunFailed(LymaError):
    """A compiled agent ended without a result; `data` holds the status."""

    kind, code = "run_failed", -31013


class SessionNotFound(LymaError):
    """There is no such session."""

    kind, code = "session_not_found", -31004


class SessionBusy(LymaError):
    """The session has a turn under way; `data` holds it."""

    kind, code, retryable = "session_busy", -31003, True


class DocumentOutOfSync(LymaError):
    """The editor's document is not the one the request speaks of."""

    kind, code, retryable = "document_out_of_sync", -31007, True


class EditConflict(LymaError):
    """A file changed since it was read."""

    kind, code, retryable = "edit_conflict", -31014, True


class ServerBusy(LymaError):
    """Too much is under way."""

    kind, code, retryable = "server_busy", -31009, True


class ToolError(LymaError):
    """A tool could not do what the model asked; the message goes back to the model, never up to the user."""

    kind = "tool_error"


REMEDIES: Final = {
    errno.ENOSPC: "make room there",
    errno.EDQUOT: "make room there",
    errno.EROFS: "use a place that can be written",
    errno.EACCES: "give yourself the right to it",
    errno.EPERM: "give yourself the right to it",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
    errno.ENFILE: "close other programs",
    errno.ENOMEM: "close other programs",
    errno.EIO: "look after the disk",
    errno.ENAMETOOLONG: "give a shorter name",
}
"""What the machine refuses though nothing is wrong with Lyma, and what to do about it."""


def refusal_of(error: BaseException) -> str | None:
    """What the machine refused and the remedy, to follow a name; null where it may be a fault of ours."""
    remedy = REMEDIES.get(error.errno or 0) if isinstance(error, OSError) else None
    if remedy is None or not isinstance(error, OSError):
        return None
    return f"{(error.strerror or 'it failed').lower()}; {remedy}"
