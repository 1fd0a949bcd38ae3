"""Pictures of VS Code with Lyma, made from the real thing: `python -m tests.editors.vscode_pictures` writes docs/pictures/.

The editor, the packaged client, the server and the sandbox are the real ones; only the model is scripted.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path

from tests.editors.code_server import CodeServer
from tests.editors.pictures import CODE
from tests.editors.project import Project
from tests.editors.real_server import settings
from tests.editors.vscode_package import package
from tests.raw_client import ROOT
from tests.stub_provider import Reply, Request, StubProvider, call_tool, fail, say

FOLDER = ROOT / "docs" / "pictures"
DARK = {"workbench.colorTheme": "Default Dark Modern", "window.commandCenter": False, "editor.minimap.enabled": False}
OLD = "heapq.heappush(self._jobs, (priority, job))"
NEW = "heapq.heappush(self._jobs, (priority, next(self._order), job))"
EDITS = [
    {"old_text": "import heapq\n", "new_text": "import heapq\nimport itertools\n"},
    {"old_text": "self._jobs = []", "new_text": "self._jobs = []\n        self._order = itertools.count()"},
    {"old_text": OLD, "new_text": NEW},
]
WORDS = """Two jobs of the same priority were compared with each other, and jobs have no order.

Each job now also carries **its number of arrival**, so:

- jobs of one priority leave in the order in which they came
- a job itself is never compared
"""


def answer(request: Request) -> Reply:
    """Change the queue, then say why."""
    if request.body["messages"][-1]["role"] == "tool":
        return say(*re.findall(r"\S+\s*", WORDS), input_tokens=2210, output_tokens=64)
    return call_tool("edit_file", {"path": "jobs.py", "edits": EDITS}, input_tokens=1840, output_tokens=120)


def take_chat(folder: Path, vsix: Path) -> Path:
    """An answer with a fallback, an edit and its diff."""
    with StubProvider([fail(529)]) as busy, StubProvider(answer) as stub:
        first = {
            "LYMA_ORDER": "busy,local",
            "LYMA_PROVIDERS__BUSY__API": "openai",
            "LYMA_PROVIDERS__BUSY__BASE_URL": busy.openai_url,
            "LYMA_PROVIDERS__BUSY__MODEL": "large",
        }
        variables = {**settings(stub, folder / "home"), **first}
        with CodeServer(folder / "editor", variables, vsix=vsix, profile=DARK) as editor:
            editor.write("jobs.py", CODE)
            editor.drive(
                "pictures", file="jobs.py", prompt="Why do equal priorities fail? Mend it.", expect="never compared"
            )
            return editor.folder / "chat.png"


def take_approval(folder: Path, vsix: Path) -> Path:
    """The question about an agent, with the agent behind it."""
    project: list[Project] = []
    with StubProvider(lambda request: project[0].answer(request)) as stub:
        variables = settings(stub, folder / "home")
        with CodeServer(folder / "editor", variables, vsix=vsix, profile=DARK) as editor:
            project.append(Project(editor.workspace))
            project[0].compile(variables)
            editor.drive("approval", prompt="How many files are there?", expect="that was all", shot="approval")
            return editor.folder / "approval.png"


def main() -> None:
    """Take them all."""
    vsix = package()
    for name, take in {"vscode-chat": take_chat, "vscode-approval": take_approval}.items():
        with tempfile.TemporaryDirectory(prefix="lyma-") as folder:
            shutil.copy(take(Path(folder), vsix), FOLDER / f"{name}.png")


if __name__ == "__main__":
    main()
