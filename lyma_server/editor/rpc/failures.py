"""What went wrong, as an error that may leave the house: no traceback, no path, no secret."""

from __future__ import annotations

import itertools
import logging
from typing import TYPE_CHECKING

from pygls.exceptions import JsonRpcException

from lyma_server.editor.rpc.conversion import InvalidParams
from lyma_server.editor.rpc.envelope import INTERNAL_ERROR, INVALID_PARAMS
from lyma_server.errors import LymaError, refusal_of
from lyma_server.protocol.base import wire_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from lyma_server.protocol.base import Json

logger = logging.getLogger(__name__)


def error_object(code: int, message: str, data: Json = None) -> dict[str, Json]:
    """The member `error` of a response."""
    error: dict[str, Json] = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return error


class Failures:
    """Turns exceptions into error objects. What nobody foresaw becomes an incident, whose details are in the log only."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        """`redact` takes the known secrets out of a text."""
        self._redact = redact
        self._numbers = itertools.count(1)

    def describe(self, problem: BaseException) -> dict[str, Json]:
        """The error object for `problem`."""
        if isinstance(problem, LymaError):
            return self._describe_ours(problem)
        if isinstance(problem, InvalidParams):
            data = {"kind": "invalid_params", "retryable": False}
            return error_object(INVALID_PARAMS, self._redact(f"Invalid params: {problem}."), data)
        if isinstance(problem, JsonRpcException):
            return error_object(problem.code, self._redact(problem.message))
        refusal = refusal_of(problem)
        return self._describe_incident(problem) if refusal is None else self._describe_refusal(refusal, problem)

    def _describe_ours(self, problem: LymaError) -> dict[str, Json]:
        if problem.detail:
            logger.warning("%s: %s", problem.kind, problem.detail)
        data = {"kind": problem.kind, "retryable": problem.retryable}
        data |= {wire_name(name): self._clean(value) for name, value in problem.data.items()}
        return error_object(problem.code, self._redact(problem.message), data)

    def _describe_refusal(self, refusal: str, problem: BaseException) -> dict[str, Json]:
        """Of the machine. Which file it was is in the log: paths do not leave the house."""
        logger.warning("the machine refused: %s", problem)
        data = {"kind": "internal_error", "retryable": True}
        return error_object(INTERNAL_ERROR, f"A file of Lyma's or of the workspace: {refusal}.", data)

    def _describe_incident(self, problem: BaseException) -> dict[str, Json]:
        number = next(self._numbers)
        logger.error("incident %d", number, exc_info=problem)
        data = {"kind": "internal_error", "retryable": False, "incident": number}
        return error_object(INTERNAL_ERROR, f"Internal error, incident {number}; the details are in Lyma's log.", data)

    def _clean(self, value: object) -> Json:
        if isinstance(value, str):
            return self._redact(value)
        if isinstance(value, dict):
            return {wire_name(str(name)): self._clean(item) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._clean(item) for item in value]
        if value is None or isinstance(value, bool | int | float):
            return value
        return self._clean(_as_json(value))


def _as_json(value: object) -> Json:
    """A message of the protocol as JSON; anything else as text."""
    from lyma_server.protocol.convert import unstructure

    return unstructure(value) if hasattr(type(value), "__attrs_attrs__") else str(value)
