"""What the scripted model says, and when. `when` is a jinja expression over messages, last and tools; the first match wins."""

from __future__ import annotations

import json
from typing import Any

from attrs import frozen


@frozen
class Script:
    """`when` null is the reply to all else, and comes last. `loop` says the text again for ever."""

    text: str
    when: str | None = None
    loop: bool = False


def call(name: str, **arguments: Any) -> str:
    """A tool call as the template's model writes it."""
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


UNICODE = "Grüße aus Łódź: naïve café, 日本語のテキスト, שלום עולם, Ελληνικά, e\u0301 — 👩‍👩‍👧 🎉 ✓."
DIFF = """Here is the change:

```diff
--- a/a.py
+++ b/a.py
@@ -1,2 +1,2 @@
 def f(x):
-    return x
+    return x + 1
```

Done — naïve café 🎉."""

AFTER_TOOL = "The file says hello. I read it with the tool and found one function."
AFTER_TWO_TOOLS = "First I listed the folder, then I opened one file: both steps are done."
HELLO = "Hello! I am a scripted reply from a real llama.cpp server."
ENDLESS = "on and on it goes with no end in sight "
BEFORE_TOOL = "Let me look at it before I say more."

_TOOLS_USED = "(messages | selectattr('role', 'equalto', 'tool') | list | length)"

SCRIPTS = (
    Script(AFTER_TWO_TOOLS, f"last.role == 'tool' and {_TOOLS_USED} == 2"),
    Script(call("read_file", path="b.py"), "last.role == 'tool' and 'two steps' in messages[-3].content"),
    Script(AFTER_TOOL, "last.role == 'tool'"),
    Script(call("list_files", path="."), "tools and 'two steps' in last.content"),
    Script(BEFORE_TOOL + "\n" + call("read_file", path="c.py"), "tools and 'look' in last.content"),
    Script(call("read_file", path="a.py"), "tools and 'read' in last.content"),
    Script(DIFF, "'edit' in last.content"),
    Script(UNICODE, "'unicode' in last.content"),
    Script(ENDLESS, "'forever' in last.content", loop=True),
    Script(HELLO),
)
