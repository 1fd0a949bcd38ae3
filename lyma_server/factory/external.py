"""The external factory: somebody else's program drafts and compiles agents, in the sandbox and within a budget.

It is set in the user's own settings only, approved like an agent by the hash of all its bytes, and not trusted: what it
gives back is validated, made canonical and hashed here.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import define, field

from lyma_server.errors import ApprovalExpired, ApprovalRequired, CompileFailed, ConfigError, RunFailed
from lyma_server.factory.compile import Examined, Source, examine
from lyma_server.factory.draft import check_wish, drafted, read_answer
from lyma_server.factory.foreign import factory_bundle, with_program
from lyma_server.factory.outcome import Room, RunRequest
from lyma_server.factory.patience import undisturbed
from lyma_server.factory.spec import as_json, named_files
from lyma_server.factory.spec_text import read_spec
from lyma_server.factory.trees import adopt, save

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lyma_server.config.model import FactorySettings
    from lyma_server.config.paths import Home
    from lyma_server.factory.bundle import Bundle
    from lyma_server.factory.draft import Draft
    from lyma_server.factory.factory import Factory
    from lyma_server.factory.outcome import OnEvent, RunUsage
    from lyma_server.factory.run import Runs
    from lyma_server.protocol.base import Json


@define(eq=False)
class External:
    """The external factory of one home. `find_runs` gives what runs it. It uses no more than `room`; `charge` is told what."""

    factory: Factory
    settings: FactorySettings
    home: Home
    find_runs: Callable[[], Runs]
    room: Room = field(factory=Room)
    charge: Callable[[RunUsage], None] = lambda _used: None

    async def draft(self, task: str, workspace: Path, on_event: OnEvent) -> str:
        """The text of an agent.toml for `task`, as the program wrote it: to be read and clamped like a model's answer.

        Raises ConfigError and UsageError where the settings name no factory, the errors of approvals, whose data holds the
        hash to approve, and RunFailed.
        """
        ceiling = as_json(self.factory.ceiling)
        result = await self._ask("draft", {"task": task, "ceiling": ceiling}, workspace, on_event)
        return str(result["spec_toml"])

    async def compose(self, task: str, workspace: Path, on_event: OnEvent, name: str | None = None) -> Draft:
        """An agent for `task`; where it would be written, and what. Nothing is written yet.

        Raises SpecInvalid where it is no sound agent, and as `draft`.
        """
        check_wish(task, workspace, name)
        text = await self.draft(task, workspace, on_event)
        ceiling = self.factory.ceiling
        return drafted(read_answer(text, ceiling, name, with_files=True), ceiling, workspace, name)

    async def compile(self, text: bytes, workspace: Path, on_event: OnEvent) -> Examined:
        """Let the program compile an agent.toml, and hold what it gives back to all that holds for agents; stored if sound.

        Raises as `draft`.
        """
        examined = read_spec(text, self.factory.ceiling, [])
        if examined is None:
            return examine(Source(text), self.factory.ceiling)
        params: dict[str, Json] = {"spec_toml": text.decode()}
        result = await self._ask("compile", params, workspace, on_event)
        files = {file["path"]: _bytes_of(file) for file in result["files"]}
        beside = {name: files.pop(name)[0] for name in named_files(examined) if name in files}
        found = examine(Source(text, beside), self.factory.ceiling)
        if found.bundle is None:
            return found
        bundle = await asyncio.to_thread(self._finished, found.bundle, files, result.get("program"))
        return Examined(bundle)

    def prepare(self) -> Bundle:
        """Take a copy of the program's tree, as it is now, and store it as what is to be approved. Takes its time."""
        tree = self.settings.tree
        if self.settings.mode != "external" or tree is None or not self.settings.command:
            problem = "There is no external factory: set factory.mode, factory.command and factory.tree."
            raise ConfigError(problem, key="factory.mode")
        root = Path(tree).expanduser()
        listing = adopt(root, self.home.trees)
        bundle = factory_bundle(self.settings.command, str(root), listing, self.settings.external)
        self.factory.store.save(bundle)
        return bundle

    async def _ask(self, method: str, params: dict[str, Json], workspace: Path, on_event: OnEvent) -> dict[str, Any]:
        bundle = await asyncio.to_thread(self.prepare)
        try:
            await asyncio.to_thread(self.factory.admit, bundle.hash, workspace)
        except (ApprovalRequired, ApprovalExpired) as lack:
            lack.message = f"The external factory cannot be asked: {lack.message[0].lower()}{lack.message[1:]}"
            raise
        question: dict[str, Json] = {"method": method, "params": params}
        asked = RunRequest(bundle.hash, question, workspace, secrets.token_hex(8), self.room)
        running = asyncio.create_task(self.find_runs().run(asked, on_event))
        try:
            result = await undisturbed(running, running.cancel)
        finally:
            if not running.cancelled() and running.exception() is None:
                self.charge(running.result().usage)
        if result.error is not None:
            raise RunFailed(result.error.message, status=result.status, run_id=result.run_id)
        output: dict[str, Any] = result.output
        return output

    def _finished(self, bundle: Bundle, others: Mapping[str, tuple[bytes, bool]], program: list[str] | None) -> Bundle:
        """The bundle as it is stored. Raises CompileFailed where the program sent files that nothing names."""
        if program is not None:
            bundle = with_program(bundle, program, save(others, self.home.trees))
        elif others:
            raise CompileFailed(
                f"The external factory sent {min(others)[:100]!r}, which the agent does not name; name it or leave it out.",
                diagnostics=[],
            )
        self.factory.store.save(bundle, {"factory": "external"})
        return bundle


def _bytes_of(file: Mapping[str, Any]) -> tuple[bytes, bool]:
    try:
        return base64.b64decode(file["base64"], validate=True), bool(file.get("executable", False))
    except (binascii.Error, ValueError):
        raise CompileFailed(
            f"The external factory sent {file['path'][:100]!r}, which is no base64.", diagnostics=[]
        ) from None
