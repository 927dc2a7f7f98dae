# make setup && rota dev   (after: source .venv/bin/activate, or call .venv/bin/rota)
PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup lock lint test bench fuzz chaos dev openapi

setup: .venv/.ready  ## Make .venv with rota and everything it needs on one machine

.venv/.ready: requirements.lock pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	test -x $(BIN)/uv || $(BIN)/python -m pip --version >/dev/null 2>&1 || $(BIN)/python -m ensurepip >/dev/null
	test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet uv
	VIRTUAL_ENV=$(CURDIR)/.venv $(BIN)/uv pip install --quiet --compile-bytecode --require-hashes --requirement requirements.lock
	VIRTUAL_ENV=$(CURDIR)/.venv $(BIN)/uv pip install --quiet --no-deps --editable .
	@touch $@
	@echo "Ready. Next: source .venv/bin/activate && rota dev"

lock:  ## Renew requirements.lock from pyproject.toml
	$(BIN)/uv export --quiet --no-emit-project --all-extras --all-groups --no-header --no-annotate --prune llm --prune llama-cpp-python --output-file requirements.lock

lint: setup  ## Style, types and the direction of imports
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

test: setup  ## Everything that CI runs, on real parts
	$(BIN)/pytest

bench: setup  ## Ratios: against bare handlers, workflows, calls and statements; 10 million tasks against 10 thousand
	failed=0; for part in bench mcp_bench hostile_bench credits_bench size; do \
	    $(BIN)/python -m tests.load.$$part || failed=1; done; exit $$failed

fuzz: setup  ## 500 examples per operation, both variants
	ROTA_FUZZ_EXAMPLES=500 $(BIN)/pytest tests/fuzz

chaos: setup  ## The long forms: outages, kills at every commit, a storm of kills, endurance
	ROTA_TEST_REDIS_OUTAGE_S=20 $(BIN)/pytest tests/e2e
	$(BIN)/python -m tests.chaos.boundaries --times 10
	$(BIN)/python -m tests.chaos.storm --tasks 1008 --kills 120
	$(BIN)/python -m tests.chaos.storm --tasks 512 --kills 100 --victims worker api postgres
	$(BIN)/python -m tests.chaos.endurance

dev: setup  ## Run everything on this machine
	$(BIN)/rota dev

openapi: setup  ## Renew the descriptions in openapi/
	$(BIN)/rota admin openapi --variant a --output openapi/variant-a.json
	$(BIN)/rota admin openapi --variant b --output openapi/variant-b.json
