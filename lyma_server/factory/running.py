"""One run, from its admission to its result. However it ends, nothing of it is left but its folder in `runs`."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any, Final

from attrs import define, evolve, field

from lyma_server.errors import LymaError, UsageError
from lyma_server.factory.allowance import allowed, kernel_bounds, reach_of
from lyma_server.factory.asking import Caller, Tally
from lyma_server.factory.bridge import Bridge, is_question
from lyma_server.factory.budget import NOTHING, Amount, Budget, Exhausted
from lyma_server.factory.bundle import TREE
from lyma_server.factory.changes import Returning
from lyma_server.factory.channel import ChannelFault
from lyma_server.factory.conversation import Conversation, Misbehaved
from lyma_server.factory.dialogue import ChildGone, Dialogue
from lyma_server.factory.ending import Ending, ending_of
from lyma_server.factory.outcome import RunError, RunEvent, RunResult, RunUsage
from lyma_server.factory.patch import patch_of
from lyma_server.factory.patience import undisturbed
from lyma_server.factory.requests import one_line
from lyma_server.factory.sandbox import Launch, Limits
from lyma_server.factory.staging import Copying, PrivatePlace, Reach, Staged, copy_files
from lyma_server.factory.tool_specs import DELEGATE, tools_for
from lyma_server.factory.transcript import Transcript
from lyma_server.factory.tree import Above, Ground, Tree
from lyma_server.factory.trees import lay_out
from lyma_server.factory.versions import BUILTIN_TOOLS, LARGEST_DEPTH, RUNNER_ABI, SANDBOX_PROFILE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from lyma_server.factory.bundle import Bundle
    from lyma_server.factory.changes import Came
    from lyma_server.factory.outcome import EventKind
    from lyma_server.factory.sandbox_port import InsidePort
    from lyma_server.protocol.base import Json

USED_UP: Final = {"cpu": "cpu_s", "files": "scratch_mb"}
"""The limit that ended a child, by the reason of its end."""

GRACE_S: Final = 0.5
"""How long a child may take to end by itself."""
SHORT_GRACE_S: Final = 0.05

LARGEST_INPUT: Final = 256 << 10
"""Bytes."""


@define(eq=False)
class Run:
    """`request` of outcome.RunRequest, in parts. Call `conduct` once; `cancel` may be called at any time after."""

    ground: Ground
    tree: Tree
    run_id: str
    hash: str
    input: Json
    above: Above
    bundle: Bundle | None = None
    budget: Budget | None = None
    tally: Tally = field(factory=Tally)
    returning: Returning | None = None
    nested: list[Came] = field(factory=list)
    task: asyncio.Task[RunResult] | None = None
    _entered: bool = False
    _cancelled: bool = False

    @property
    def name(self) -> str:
        """The agent's; its hash, shortened, before it is known."""
        return self.bundle.name if self.bundle is not None else self.hash[:14]

    @property
    def path(self) -> tuple[str, ...]:
        return (*self.above.path, self.name)

    def begin(self, transcript: Transcript) -> asyncio.Task[RunResult]:
        """Start it as a task, which always ends with a result."""
        self.task = asyncio.create_task(self._conduct(transcript))
        self.tree.under_way[self.run_id] = self
        self.task.add_done_callback(lambda _task: self.tree.under_way.pop(self.run_id, None))
        return self.task

    def cancel(self) -> None:
        """End it, with the status `cancelled` unless it has ended already. Any number of times."""
        if self.task is not None and not self._cancelled:
            self._cancelled = True
            if self._entered:  # else a task ends without having begun
                self.task.cancel()

    # --- its life

    async def _conduct(self, transcript: Transcript) -> RunResult:
        began = time.monotonic()
        ending = await self._ending(transcript)
        self._cancelled = True  # too late for that from here on: there is a status
        try:
            return await self._result(ending, transcript, began)
        finally:
            transcript.close()

    async def _ending(self, transcript: Transcript) -> Ending:
        self._entered = True
        try:
            self._refuse_if_cancelled()
            with self.ground.factory.store.in_use(self.hash):
                bundle = await self._admit()
                transcript.note("started", hash=self.hash, name=bundle.name, path=self.path, input=self.input)
                self.tell("started", bundle.facts["spec"]["purpose"])
                return Ending("ok", await self._live(bundle, transcript))
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - whatever it is, a run ends with one status
            with suppress(LymaError):
                transcript.note("fault", detail=f"{type(error).__name__}: {error}")
            return ending_of(error, self.name)

    def _refuse_if_cancelled(self) -> None:
        if self._cancelled:
            raise asyncio.CancelledError

    async def _admit(self) -> Bundle:
        """The bytes that a person approved, once everything that must hold here does. Raises what it lacks."""
        if len(json.dumps(self.input).encode()) > LARGEST_INPUT:
            raise UsageError(f"The input has more than {LARGEST_INPUT} bytes; let the agent read a file instead.")
        factory, workspace = self.ground.factory, self.tree.workspace
        bundle = self.bundle = await asyncio.to_thread(factory.admit, self.hash, workspace)
        _check_versions(bundle)
        if bundle.kind == "factory" and not is_question(self.input):
            raise UsageError(f"{bundle.name} is a factory: it drafts and compiles agents, and is not run by itself.")
        if self.above.path and bundle.delegates:
            raise UsageError(f"{bundle.name} runs agents in turn; only {LARGEST_DEPTH} level is allowed.")
        await self.ground.prove_mask(workspace)
        await self.ground.sandbox.prove()
        facts = {"hash": self.hash, "workspace": str(workspace.resolve()), "run": self.run_id}
        await asyncio.to_thread(lambda: factory.gate.audit.append("ran", int(time.time()), **facts))
        return bundle

    async def _live(self, bundle: Bundle, transcript: Transcript) -> dict[str, Json]:
        """All that is bounded in time, and after it what must be done in any case."""
        ceiling = self.ground.factory.ceiling
        limits, above = allowed(bundle.facts, ceiling), self.above
        self.budget = above.budget.child(bundle.name, limits) if above.budget else Budget(bundle.name, limits)
        self.tally.above = above.tally
        async with AsyncExitStack() as after:
            after.enter_context(self.budget.running())
            async with asyncio.timeout(self.budget.seconds_left()):
                staged = await self._stage(bundle, after)
                inside = await self.ground.sandbox.start(self._launch(bundle, staged))
                after.push_async_exit(_ending_of_child(inside))
                return await self._talk(bundle, staged, inside, transcript)
        raise AssertionError("nothing above swallows an exception")

    def _launch(self, bundle: Bundle, staged: Staged) -> Launch:
        bounds = self._kernel(bundle)
        return Launch(
            bundle=bundle,
            staged=staged.place,
            limits=Limits(**bounds),
            program=bundle.program or None,
            tree=staged.tree,
            lines=bundle.kind == "factory",
        )

    def _kernel(self, bundle: Bundle) -> dict[str, int]:
        return kernel_bounds(bundle.facts, self.ground.factory.ceiling, self.above.kernel)

    def _reach(self, bundle: Bundle) -> Reach:
        own = reach_of(bundle.facts)
        return own.below(self.above.reach) if self.above.reach is not None else own

    async def _stage(self, bundle: Bundle, after: AsyncExitStack) -> Staged:
        assert self.budget is not None  # noqa: S101 - `_live` has made it
        place = PrivatePlace.make(self.ground.home.runs)
        after.push_async_callback(_remove, place)
        given_up = threading.Event()
        copying = Copying(self._reach(bundle), self.budget.left(), self.budget.path, given_up)
        copy = asyncio.to_thread(copy_files, self.tree.workspace, place.inside, copying)
        staged = await undisturbed(copy, given_up.set)
        self.budget.spend(Amount(files_read=len(staged.digests), bytes_read=staged.size))
        if bundle.kind == "data":
            return staged
        await undisturbed(asyncio.to_thread(lay_out, bundle.files[TREE], self.ground.home.trees, place.tree))
        return evolve(staged, tree=place.tree)

    async def _talk(
        self, bundle: Bundle, staged: Staged, inside: InsidePort, transcript: Transcript
    ) -> dict[str, Json]:
        dialogue = self._dialogue(bundle, staged, inside, transcript)
        spec: Any = bundle.facts["spec"]
        try:
            if bundle.kind == "factory":
                bridge = Bridge(inside.lines(), dialogue, lambda text: self.tell("progress", text))
                return await bridge.ask(self.input["method"], self.input["params"])
            start: dict[str, Json] = {"type": "start", "kind": bundle.facts["kind"], "spec": spec, "input": self.input}
            return await dialogue.attend(start)
        except (ChildGone, ChannelFault) as error:
            ended = await inside.stop(GRACE_S if isinstance(error, ChildGone) else SHORT_GRACE_S)
            transcript.note("child", status=ended.status, reason=ended.reason, output=ended.output)
            if ended.reason in USED_UP:
                raise Exhausted(USED_UP[ended.reason], self.path) from error
            if isinstance(error, ChildGone):
                raise ChildGone(f"status {ended.status}") from error
            raise

    def _dialogue(self, bundle: Bundle, staged: Staged, inside: InsidePort, transcript: Transcript) -> Dialogue:
        assert self.budget is not None  # noqa: S101 - `_live` has made it
        ground, spec, workspace = self.ground, bundle.facts["spec"], self.tree.workspace
        tools = tuple(tool for tool in tools_for(bundle) if tool.name != DELEGATE or self._may_delegate(bundle))
        self.returning = Returning(
            self.run_id, workspace, self._reach(bundle), staged.digests, self.budget, self.tree.claims
        )
        return Dialogue(
            channel=inside.channel,
            conversation=Conversation(bundle, tools, self.input, ground.redactor.redact, self.run_id, str(workspace)),
            caller=Caller(ground.model, self.budget, self.tally, spec["model"]["max_output_tokens"]),
            returning=self.returning,
            budget=self.budget,
            transcript=transcript,
            most_output=allowed(bundle.facts, ground.factory.ceiling).most.bytes_output,
            may_go_on=self._check_approval,
            delegate=self._delegate,
            tell=self.tell,
        )

    def _check_approval(self) -> None:
        for hash_ in (*self.above.hashes, self.hash):
            self.ground.factory.gate.check(hash_, self.tree.workspace)

    # --- runs below it

    def _may_delegate(self, bundle: Bundle) -> bool:
        return not self.above.path and bool(bundle.delegates) and bundle.facts["spec"]["delegate"]["max_depth"] > 0

    async def _delegate(self, hash_: str, input_: Json) -> dict[str, Json]:
        """Run an agent below this one. Raises Misbehaved where the manifest does not name it."""
        bundle = self.bundle
        if bundle is None or not self._may_delegate(bundle) or hash_ not in bundle.delegates:
            raise Misbehaved("an agent.run that its manifest does not allow")
        async with self.tree.turns:
            run = self._below(bundle, hash_, input_)
            transcript = Transcript(self.ground.home.runs / run.run_id, self.ground.redactor)
            result = await undisturbed(run.begin(transcript), run.cancel)
        if result.status == "ok" and run.returning is not None:
            self.nested += run.returning.came.values()
        return {
            "status": result.status,
            "output": result.output,
            "error": result.error.message if result.error else None,
        }

    def _below(self, bundle: Bundle, hash_: str, input_: Json) -> Run:
        above = Above(
            path=self.path,
            hashes=(*self.above.hashes, self.hash),
            budget=self.budget,
            tally=self.tally,
            reach=self._reach(bundle),
            kernel=self._kernel(bundle),
        )
        return Run(self.ground, self.tree, f"{self.run_id}.{self.tree.next_number()}", hash_, input_, above)

    # --- telling

    def tell(self, kind: EventKind, text: str) -> None:
        """Tell the person, in one line without secrets."""
        line = one_line(self.ground.redactor.redact(text))
        self.tree.on_event(RunEvent(self.run_id, self.path, kind, line, self.hash))

    async def _result(self, ending: Ending, transcript: Transcript, began: float) -> RunResult:
        came: list[Came] = []
        if self.returning is not None:
            if ending.status == "ok":
                came = [*self.returning.came.values(), *self.nested]
            else:
                self.returning.drop()
        result = RunResult(
            run_id=self.run_id,
            hash=self.hash,
            status=ending.status,
            output=ending.output,
            error=ending.error,
            usage=self._usage(began),
            patch=None,
            transcript=transcript.path,
            changes=tuple(each.change for each in sorted(came, key=lambda each: each.change.path)),
        )
        changed = [(each.change.path, each.old, each.change.content) for each in came]
        return self._written(result, await asyncio.to_thread(patch_of, changed) if changed else "", transcript)

    def _written(self, result: RunResult, patch: str, transcript: Transcript) -> RunResult:
        """Write patch and result. Where the disk refuses, the result says so."""
        try:
            if patch:
                result = evolve(result, patch=transcript.write_patch(patch))
            transcript.note("ended", status=result.status)
            transcript.write_result(result.to_json())
        except LymaError as error:
            failed = RunError(error.kind, error.message)
            result = evolve(result, status="crashed", output=None, error=failed, patch=None, changes=())
        self.tell("ended", f"{result.status}{f': {result.error.message}' if result.error else ''}")
        return result

    def _usage(self, began: float) -> RunUsage:
        used = self.budget.used if self.budget is not None else NOTHING
        wall_ms = round((time.monotonic() - began) * 1000)
        return RunUsage(used.turns, self.tally.tokens_in, self.tally.tokens_out, used.cost_micros, wall_ms)


def _check_versions(bundle: Bundle) -> None:
    """Raise UsageError where the bundle was compiled for another Lyma."""
    facts = bundle.facts
    wanted = {name: BUILTIN_TOOLS.get(name) for name in facts["builtin_tools"]}
    if (facts["runner_abi"], facts["sandbox_profile"], facts["builtin_tools"]) != (RUNNER_ABI, SANDBOX_PROFILE, wanted):
        raise UsageError(f"{bundle.name} was compiled for another version of Lyma's runner; compile it again.")


def _ending_of_child(inside: InsidePort) -> Callable[..., Awaitable[None]]:
    """What ends it in any case. One that broke the rules gets hardly any time for it."""

    async def end(raised: type[BaseException] | None, *_: object) -> None:
        odd = raised is not None and issubclass(raised, (Misbehaved, ChannelFault))
        await undisturbed(inside.stop(SHORT_GRACE_S if odd else GRACE_S))

    return end


async def _remove(place: PrivatePlace) -> None:
    await undisturbed(asyncio.to_thread(place.remove))
