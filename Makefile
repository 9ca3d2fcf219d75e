# Every target makes what it needs; `make demo` and `make test` work on a fresh clone (Python 3.11, a C++ compiler).
VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
# torch's own threads serve one process; test processes side by side get one each.
WORKERS ?= 2

.PHONY: demo test test-fast bench lint format setup clean

demo: setup
	$(BIN)/mmguard demo

test: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

test-fast: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m 'not slow'

bench: setup
	$(BIN)/python -m benchmarks

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

setup: $(STAMP)

$(STAMP): tools/setup.sh constraints.txt pyproject.toml
	@PYTHON=$(PYTHON) sh tools/setup.sh $(VENV)

clean:
	rm -rf $(VENV) build *.egg-info work_dirs mmguard_demo
