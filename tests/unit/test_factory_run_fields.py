"""Every setting of an agent is held to when it runs: which test sees to which."""

from __future__ import annotations

import ast
from pathlib import Path

import attrs
import pytest

from lyma_server.config import shape
from lyma_server.factory.spec import Spec

TESTS = Path(__file__).parents[1]

RUN = "unit/test_factory_run.py"
BUDGET = "unit/test_factory_run_budget.py"
FILES = "unit/test_factory_run_files.py"
NESTING = "unit/test_factory_run_nesting.py"
SANDBOX = "security/test_run_sandbox.py"
LIMITS = "security/test_sandbox_limits.py"
TOLD = (RUN, "test_the_model_is_told_the_instructions_and_gets_the_input_as_data")

SEEN_TO = {
    "lyma_agent": (RUN, "test_a_bundle_for_another_runner_is_refused"),
    "name": (NESTING, "test_the_model_is_offered_the_agents_that_the_manifest_names_and_hears_their_result"),
    "purpose": (RUN, "test_the_first_event_says_what_it_is_for"),
    "instructions": TOLD,
    "model.class": TOLD,
    "model.max_output_tokens": TOLD,
    "tools.allow": (FILES, "test_an_agent_without_the_tool_for_it_writes_nothing"),
    "tools.python": (SANDBOX, "test_an_agent_reads_counts_and_writes"),
    "files.read": (FILES, "test_the_child_sees_copies_of_what_the_globs_match"),
    "files.write": (FILES, "test_paths_that_may_not_be_written_end_the_run"),
    "files.max_files": (BUDGET, "test_files_read"),
    "files.max_read_bytes": (BUDGET, "test_bytes_read"),
    "files.max_write_bytes": (BUDGET, "test_bytes_written"),
    "network.mode": ("security/test_sandbox_escapes.py", None),
    "budget.max_turns": (BUDGET, "test_turns"),
    "budget.max_tool_calls": (BUDGET, "test_tool_calls_count_by_the_model_and_not_by_the_child"),
    "budget.max_tokens": (BUDGET, "test_tokens"),
    "budget.max_cost_micros": (BUDGET, "test_cost"),
    "budget.wall_s": (BUDGET, "test_time"),
    "budget.cpu_s": (SANDBOX, "test_tools_that_misbehave"),
    "budget.memory_mb": (SANDBOX, "test_tools_that_misbehave"),
    "budget.scratch_mb": (LIMITS, None),
    "budget.processes": (LIMITS, None),
    "delegate.agents": (NESTING, "test_an_agent_that_the_manifest_does_not_name_ends_the_run"),
    "delegate.max_depth": (NESTING, "test_an_agent_below_runs_none"),
    "delegate.max_runs": (NESTING, "test_at_most_so_many_runs_in_all"),
    "output.schema": (RUN, "test_an_output_is_repaired_twice_and_then_given_up"),
    "output.max_bytes": (BUDGET, "test_bytes_of_output"),
}
"""By setting, the file and the test; null where the whole file is about it."""


def settings() -> set[str]:
    parts = shape.parts(Spec).values()
    sections = [shape.parts(part.cls, part.path).values() for part in parts if isinstance(part, shape.Section)]
    leaves = [part for part in (*parts, *(leaf for section in sections for leaf in section)) if hasattr(part, "kind")]
    return {".".join(map(str, leaf.path)) for leaf in leaves}


def test_each_setting_has_one() -> None:
    assert settings() == set(SEEN_TO)
    assert len(attrs.fields(Spec)) == 11


@pytest.mark.parametrize(("file", "test"), SEEN_TO.values(), ids=SEEN_TO)
def test_it_is_there(file: str, test: str | None) -> None:
    tree = ast.parse((TESTS / file).read_text())
    names = {node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}
    assert test in names if test is not None else any(name.startswith("test_") for name in names)
