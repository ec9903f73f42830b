# make demo      derive and print the transformer tables
# make test      run the tests but for the slow ones
# make test-all  run the slow ones as well: every family, strategy, fault and bad line; a sixth of
#                the slow ones alone: make test-slow PART=1/6
# make check     lint, formatting and types
# make reports   write the reports anew, from what is fitted where rows were measured
# make lifted    compare families with exported graphs: reports/lifted/, half a minute a family
# make bench     measure speed: reports/benchmarks/, some minutes
# make site      build the guide: reports/site/_build/index.html, offline
# make wheel     build dist/*.whl, with the programs of common models
# make clean     remove everything that make made
#
# PYTHON names the interpreter that makes the virtual environment (3.11 or later).

PYTHON ?= python3
VENV := .venv
STAMP := $(VENV)/.installed

# Commands that the tests start would compile the whole library each time.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-slow test-all check reports lifted bench site wheel clean
.DEFAULT_GOAL := test

demo: $(STAMP)
	@$(VENV)/bin/symbolic-cost reproduce transformer-tables --formulas

test: $(STAMP)
	@$(VENV)/bin/python -m pytest -q -n 2 --dist worksteal -m 'not slow'

test-slow: $(STAMP)
	@PART=$(PART) $(VENV)/bin/python -m pytest -q -n 2 --dist worksteal -m slow

test-all: test test-slow

check: $(STAMP)
	@$(VENV)/bin/ruff check
	@$(VENV)/bin/ruff format --check
	@$(VENV)/bin/mypy

bench: $(STAMP)
	@$(VENV)/bin/python reports/benchmarks/run.py > reports/benchmarks/output.md
	@$(VENV)/bin/python reports/benchmarks/program.py > reports/benchmarks/program.md
	@$(VENV)/bin/python reports/benchmarks/search.py

site: $(STAMP)
	@$(VENV)/bin/pip install --quiet --quiet --disable-pip-version-check -e '.[site]'
	@$(VENV)/bin/sphinx-build -W --keep-going -q -b html reports/site reports/site/_build
	@echo reports/site/_build/index.html

wheel: $(STAMP)
	@$(VENV)/bin/python -m hatchling build -t wheel

REPORTS := systems formulas coverage conventions scaling laws errata accuracy

reports: $(STAMP)
	@for one in $(REPORTS); do \
		$(VENV)/bin/python reports/$$one/run.py > reports/$$one/output.new || exit 1; \
		mv reports/$$one/output.new reports/$$one/output.md; \
		echo reports/$$one/output.md; \
	done

lifted: $(STAMP)
	@$(VENV)/bin/pip install --quiet --quiet --disable-pip-version-check -e '.[lifted]'
	@$(VENV)/bin/python -W ignore -m tests.golden.pt2.lifted

clean:
	@rm -rf $(VENV) build dist reports/site/_build reports/site/generated .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info
	@find symbolic_cost tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP): pyproject.toml
	@echo "Installing into $(VENV) (about a minute) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(VENV)/bin/pip install --quiet --quiet --disable-pip-version-check -e '.[test]'
	@touch $@
