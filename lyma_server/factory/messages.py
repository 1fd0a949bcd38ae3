"""The messages between a run and its parent, as plain JSON objects; the channel frames them.

The child speaks first; requests carry an `id`, a whole number that grows, and wait for the reply with the same one:

    child   {"type": "hello", "abi": 1}
    parent  {"type": "start", "kind": "data", "spec": {manifest's spec}, "input": any}
    child   {"type": "llm.step", "id": 1, "append": [{"call": "c1", "text": "...", "is_error": false}]}
    parent  {"type": "reply", "id": 1, "text": "...", "tool_calls": [{"id", "name", "arguments": {}}], "left": {...}}
    child   {"type": "agent.run", "id": 2, "hash": "sha256:...", "input": any}
    parent  {"type": "reply", "id": 2, "status": "ok", "output": any, "error": null}
    child   {"type": "event", "text": "..."}
    child   {"type": "put_file", "id": 3, "path": "a/b.md", "base64": "...", "more": false}
    parent  {"type": "reply", "id": 3, "accepted": true}
    child   {"type": "result", "id": 4, "output": any}
    parent  {"type": "reply", "id": 4, "accepted": false, "problem": "..."}       or accepted true, and then the child ends
    parent  {"type": "cancel"}                                                  at any time; the child ends

`llm.step` is sent with an empty `append` at first, and then with a result for each of the calls that the last reply held,
in order. The parent hands over only calls of tools that the agent has, with arguments that fit their schema. Without calls
`text` is the model's answer: the child parses it into its output (an object; {"text": ...} where no schema is named) and
sends its changed files and then the `result`. Where that is not accepted, it asks once more by `llm.step` with an empty
`append`: the parent has told the model what was wrong. A file that is too large for one message comes in pieces, all but
the last with `more`. One `llm.step` is in flight, or several `agent.run`, and nothing else meanwhile but events.
"""

from __future__ import annotations
