# Two commands for a fresh machine: `make demo` and `make test`. Everything lives in $(VENV); nothing else is touched.
PYTHON ?= python3
VENV ?= .venv
BENCH_VENV ?= .venv-bench
PACKAGE_VENV ?= .venv-package
FLOORS_VENV ?= .venv-floors
BIN := $(VENV)/bin
DEMO_PROMPT ?= In one sentence, what is a computer program?
override DEMO_PROMPT := $(value DEMO_PROMPT)
DECIDES = */router/policy.py,*/router/keyring.py,*/executor/blacklist.py,*/factory/approval.py,*/secret.py
COMPILE = $(BIN)/python -m compileall -q lyma_server
# As an installer does: the tests start Lyma a thousand times.
export DEMO_PROMPT  # so that quotes and dollars in it arrive as they were typed

.PHONY: demo test test-all coverage lint sabotage package floors bench live live-tasks lock protocol clean

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Lyma needs Python 3.11 or newer; run: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "Python's venv is missing; run: sudo apt install python3-venv"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@: > $@

$(VENV)/.runtime: requirements/runtime.txt pyproject.toml $(VENV)/.created
	@echo "Fetching what Lyma needs into $(VENV); this takes about half a minute."
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/runtime.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --editable .
	@: > $@

$(VENV)/.development: requirements/development.txt $(VENV)/.runtime
	@echo "Fetching what the tests need into $(VENV); this takes about a minute."
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/development.txt
	@: > $@

demo: $(VENV)/.runtime  ## a real answer from the embedded model, then the tour; no key needed
	$(BIN)/lyma embedded install
	$(BIN)/lyma ask --provider embedded "$$DEMO_PROMPT"
	$(BIN)/lyma demo

test: $(VENV)/.development  ## everything that needs no root and no system package
	$(BIN)/lyma embedded install
	$(COMPILE)
	$(BIN)/python -m pytest -m "not full"

test-all: $(VENV)/.development $(VENV)/.stylua  ## everything; nothing may be skipped
	$(BIN)/lyma embedded install
	$(COMPILE)
	TEST_ALL=1 $(BIN)/python -m pytest

$(VENV)/.stylua: $(VENV)/.created
	npm install --silent --no-fund --no-audit --prefix $(VENV)/node @johnnymorganz/stylua@2.5.2
	@: > $@

coverage: $(VENV)/.development  ## what the tests reach, branches too: all of what decides, and most of the rest
	$(BIN)/lyma embedded install
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -m "not full" -k "not nothing_heavy and not early_ctrl_c"  # which hold without it
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --fail-under=100 --include="$(DECIDES)"
	$(BIN)/coverage report --fail-under=90 --skip-covered

lint: $(VENV)/.development  ## style, types, layers, spelling
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell

sabotage: $(VENV)/.development  ## break every promise of safety in a copy, and see that a test notices
	$(BIN)/lyma embedded install
	$(BIN)/python -m tests.sabotage.run $(PROMISES)

bench: $(VENV)/.development  ## ratios against bare Python, bare pygls, the bare SDK and LiteLLM's Router, measured side by side
	@$(MAKE) --no-print-directory $(BENCH_VENV)/.created || echo "LiteLLM cannot be had here, so the comparison with it is left out"
	$(BIN)/python bench/run.py $(BENCHMARKS)

package:  ## build wheel and sdist, and try what they install
	$(PYTHON) -m venv $(PACKAGE_VENV)
	$(PACKAGE_VENV)/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/package.txt
	$(PACKAGE_VENV)/bin/python -m tests.package.check

floors:  ## the unit and protocol tests with the oldest dependencies that pyproject.toml allows
	$(PYTHON) -m venv $(FLOORS_VENV)
	$(FLOORS_VENV)/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/floors.txt
	$(FLOORS_VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps --editable .
	$(FLOORS_VENV)/bin/lyma embedded install
	$(FLOORS_VENV)/bin/python -m pytest -m "not full" tests/unit tests/protocol

$(BENCH_VENV)/.created: requirements/bench.txt
	$(PYTHON) -m venv $(BENCH_VENV)
	$(BENCH_VENV)/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/bench.txt
	@touch $@

live: $(VENV)/.runtime  ## ask each provider that you have a key for, for about a cent each; nothing is sent without keys
	$(BIN)/python -m tests.live.ask_each

live-tasks: $(VENV)/.runtime  ## let your provider solve the twenty tasks, for some cents or more: it says how much; TASKS="fix-a-bug" for some, PROVIDER=name
	$(BIN)/python bench/tasks/run.py --live $(if $(PROVIDER),--provider "$(PROVIDER)") $(TASKS)

protocol: $(VENV)/.development  ## write protocol.md's tables from the wire types
	$(BIN)/python -m lyma_server.protocol.render

# Extras are kept: for one that is not named an older pip takes the newest version, of which there is no hash.
LOCK := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-strip-extras

lock:  ## renew the lock files (needs uv)
	$(LOCK) --extra embedded pyproject.toml -o requirements/runtime.txt
	$(LOCK) --extra embedded --group test --group lint pyproject.toml -o requirements/development.txt
	$(LOCK) --extra embedded --group test --resolution lowest-direct pyproject.toml -o requirements/floors.txt
	$(LOCK) --group bench -o requirements/bench.txt
	$(LOCK) --group package -o requirements/package.txt

clean:
	rm -rf $(VENV) $(BENCH_VENV) $(PACKAGE_VENV) $(FLOORS_VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
