# Every command of this repository. Needs Python 3.11 or newer, git and make; the rest is installed
# into .venv (and, for the tests with other clients and stores, into .venv-fastmcp, .venv-strands and .venv-ministack).

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SUFFIXES:

# The first Python that is new enough; `make PYTHON=/path/to/python3 …` overrides the choice.
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
  "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && { echo "$$python"; break; }; done)
PORT ?= 8321
CATALOGUE ?= catalogue

PY := .venv/bin/python
LOCAL := .venv/.installed-local
DEV := .venv/.installed-dev
NODE := .venv/.installed-node
SUITE := node_modules/.installed-suite
FASTMCP := .venv-fastmcp/.installed
STRANDS := .venv-strands/.installed
MINISTACK := .venv-ministack/.installed
DEPLOY := .venv/.installed-deploy

TYPED := $(wildcard functions/taskrail functions/handlers functions/tools functions/jobs functions/workflows functions/catalogue.py \
  local infra app.py demo benchmarks taskrail_client)

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# CDK's bridge to Node warns of every version that is newer than itself.
export JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION := 1
export JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION := 1

LOCAL_TESTS := tests/chaos tests/workflows tests/taskrail_client \
  tests/functional/test_local_jobs.py tests/functional/test_local_stack.py tests/unit/test_local_supervisor.py tests/unit/test_local_front.py \
  tests/fuzz/test_front.py

CDK := PATH="$(CURDIR)/.venv/bin:$$PATH" node_modules/.bin/cdk

.PHONY: help demo serve test test-local test-long test-races test-clients test-infra test-deploy conformance lint format clean \
  synth bootstrap deploy destroy smoke bench cost deploy-local

help: ## List the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

demo: $(LOCAL) ## Watch a real client run, drop, resume, answer and cancel real tasks (about a minute)
	@$(PY) -m demo

serve: $(LOCAL) ## Run the whole kit on this machine (PORT=8321 CATALOGUE=catalogue)
	@$(PY) -m local --port $(PORT) --catalogue $(CATALOGUE)

test: $(DEV) ## Run the tests that start no processes and need no other environment (ARGS="-k name")
	$(PY) -m pytest -n 2 --ignore=tests/infra --ignore=tests/benchmarks $(LOCAL_TESTS:%=--ignore=%) \
	  -m "not clients and not conformance and not ministack" $(ARGS)

test-local: $(DEV) ## Run the tests of the local stack and of the client that survives: processes, kills, state machines
	$(PY) -m pytest -n 2 -m "not ministack" $(LOCAL_TESTS) $(ARGS)

test-long: $(DEV) ## Run both in their long forms: fault table, property test, fuzz, races, dying processes
	@TASKRAIL_LONG=1 $(MAKE) --no-print-directory test
	@TASKRAIL_LONG=1 $(MAKE) --no-print-directory test-local

test-races: $(DEV) $(MINISTACK) ## Run the long form of the races, and state machines, on MiniStack
	TASKRAIL_LONG=$${TASKRAIL_LONG:-1} $(PY) -m pytest -n 2 -m ministack tests/races tests/workflows $(ARGS)

test-clients: $(DEV) $(FASTMCP) $(STRANDS) $(SUITE) ## Drive the local stack with real clients, in eight ways
	$(PY) -m pytest -n 2 --dist loadfile -m clients tests/clients $(ARGS)

conformance: $(LOCAL) $(SUITE) ## Run the official MCP conformance suite against the local stack (ARGS=scenario)
	@$(PY) -m tests.conformance.run $(ARGS)

test-infra: $(DEV) $(DEPLOY) $(SUITE) ## Synthesize the stacks and check what is in them; check the state machines
	$(PY) -m pytest -n 2 -m "infra and not ministack" tests/infra $(ARGS)
	$(PY) -m pytest -q tests/workflows/test_definitions.py tests/benchmarks

test-deploy: $(DEV) $(DEPLOY) $(SUITE) $(MINISTACK) ## Deploy to an emulator for real, use it, and delete it
	$(PY) -m pytest -m ministack tests/infra $(ARGS)

lint: $(DEV) $(DEPLOY) $(SUITE) ## Check style, format, types, and the rules for what is deployed
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy $(TYPED)
	@$(PY) -m infra.check

synth: $(DEPLOY) $(SUITE) ## Make the CloudFormation template (ARGS="-c auth=iam"); needs no credentials
	@$(CDK) synth --quiet $(ARGS)

deploy: $(DEPLOY) $(SUITE) ## Deploy to the AWS account of your credentials (ARGS="-c auth=iam")
	@$(CDK) deploy $(ARGS)

bootstrap: $(DEPLOY) $(SUITE) ## Prepare an account and region for CDK, once (ARGS="aws://ACCOUNT/REGION")
	@$(CDK) bootstrap $(ARGS)

destroy: $(DEPLOY) $(SUITE) ## Delete the deployment, and what it was told to delete (NAME=taskrail)
	@$(PY) -m infra.empty $(or $(NAME),taskrail)
	@$(CDK) destroy $(ARGS)

bench: $(LOCAL) $(MINISTACK) ## Measure what the kit costs, beside the official SDK, FastMCP and the least there is (ARGS="--quick cold warm")
	@$(PY) -m benchmarks $(ARGS)

cost: $(LOCAL) ## Print what a million tasks of each tool cost (CATALOGUE=catalogue ARGS="--runtime 60 --api rest")
	@$(PY) -m benchmarks.cost --catalogue $(CATALOGUE) $(ARGS)

smoke: $(LOCAL) ## Try a deployment out (URL=https://…/mcp ARGS="--token …")
	@test -n "$(URL)" || { echo "Say which: make smoke URL=https://…/mcp" >&2; exit 1; }
	@$(PY) -m demo.smoke $(URL) $(ARGS)

deploy-local: $(DEPLOY) $(SUITE) $(MINISTACK) ## Deploy to an emulator on this machine, and keep it until Ctrl-C
	@$(PY) -m infra.local_deploy $(ARGS)

format: $(DEV) ## Put the code into the one format, and fix what can be fixed
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

clean: ## Remove everything that these commands installed or made
	rm -rf .venv .venv-fastmcp .venv-strands .venv-ministack node_modules build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# --- what the commands stand on: each is done once, and again only when its list of packages changed

define need_python
	@test -n "$(PYTHON)" || { \
	  echo "Taskrail needs Python 3.11 or newer, and found none. Install one, or name it: make PYTHON=/path/to/python3 …" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Taskrail needs Python 3.11 or newer; $(PYTHON) is older." >&2; exit 1; }
endef

.venv/bin/python .venv-fastmcp/bin/python .venv-strands/bin/python .venv-ministack/bin/python:
	$(need_python)
	@echo "making $(@D:/bin=) with $$("$(PYTHON)" --version) (once)"
	@"$(PYTHON)" -m venv --clear $(@D:/bin=)

$(LOCAL): requirements/local.txt requirements/constraints.txt functions/requirements.txt | .venv/bin/python
	@echo "installing what the local stack needs into .venv (once, about a minute)"
	@$(PY) -m pip install -qq -r requirements/local.txt
	@touch $@

$(DEV): requirements/dev.txt requirements/constraints.txt $(LOCAL)
	@echo "installing the test and lint tools into .venv (once, about a minute)"
	@$(PY) -m pip install -qq -r requirements/dev.txt
	@touch $@

$(DEPLOY): requirements/deploy.txt requirements/constraints.txt requirements/constraints-deploy.txt $(LOCAL)
	@echo "installing CDK and its rules into .venv (once, about a minute)"
	@$(PY) -m pip install -qq -r requirements/deploy.txt
	@touch $@

$(NODE): requirements/conformance.txt $(LOCAL)
	@echo "installing Node into .venv (once)"
	@$(PY) -m pip install -qq -r requirements/conformance.txt
	@touch $@

$(SUITE): package.json package-lock.json .npmrc $(NODE)
	@echo "installing the conformance suite, MCP Inspector, CDK's command and a checker of state machines (once)"
	@PATH="$(CURDIR)/.venv/bin:$$PATH" npm ci --silent
	@touch $@

$(FASTMCP): requirements/clients-fastmcp.txt requirements/constraints-fastmcp.txt | .venv-fastmcp/bin/python
	@echo "installing the FastMCP client into .venv-fastmcp (once)"
	@.venv-fastmcp/bin/python -m pip install -qq -r requirements/clients-fastmcp.txt
	@touch $@

$(STRANDS): requirements/clients-strands.txt requirements/constraints-strands.txt | .venv-strands/bin/python
	@echo "installing the Strands client into .venv-strands (once)"
	@.venv-strands/bin/python -m pip install -qq -r requirements/clients-strands.txt
	@touch $@

$(MINISTACK): requirements/ministack.txt requirements/constraints-ministack.txt | .venv-ministack/bin/python
	@echo "installing MiniStack into .venv-ministack (once)"
	@.venv-ministack/bin/python -m pip install -qq -r requirements/ministack.txt
	@touch $@
