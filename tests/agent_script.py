"""What the models say on the whole road: the main one drafts, compiles and runs; the agent changes a file and answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.agents import document, text_of
from tests.stub_provider import call_tool, say

if TYPE_CHECKING:
    from tests.stub_provider import Reply

NAME = "changelog-writer"
SPEC = text_of(document(tools__python=[], output__schema="", tools__allow=["fs.read", "fs.write"])).decode()


def script(request: Any) -> Reply:
    text = request.raw.decode()
    messages = request.body["messages"]
    if "You write the specification of a small agent" in text:
        return say(f"```toml\n{SPEC}```")
    if f"You are {NAME}" in text:
        if len(messages) <= 2:
            return call_tool("fs-write", {"path": "CHANGELOG.md", "text": "old\nnew\n"})
        return say("One line was added.")
    results = [each for each in messages if each["role"] == "tool"]
    hashes = [word for each in results for word in each["content"].split() if word.startswith("sha256:")]
    steps = [
        lambda: call_tool("draft_agent", {"task": "summarise commits"}),
        lambda: call_tool("compile_agent", {"agent": NAME}),
        lambda: call_tool("run_compiled_agent", {"hash": hashes[0], "input": "commits"}),
        lambda: say("All done."),
    ]
    return steps[min(len(results), 3)]()
