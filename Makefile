# Every target makes what it needs; `make demo` and `make test` work on a fresh clone (Python 3.11, a C++ compiler).
# The packages with which mmguard is used and tested, each in an environment of its own (tools/stacks/):
#   make test STACK=openmmlab    mmengine, mmcv, mmsegmentation, mmdet with the newest torch and numpy
#   make test STACK=lab          the same with torch 2.1 and numpy 1.26, as most have it, and torchvision and nnU-Net
#   make test STACK=newest       the newest torch, with torchvision, transformers, RF-DETR and mmengine
#   make test STACK=onedl        the maintained onedl forks of these four
#   make test STACK=nnunet       nnU-Net
#   make test STACK=torch        torch and numpy alone
STACKS := openmmlab lab newest onedl nnunet torch
STACK ?= openmmlab
VENV ?= $(if $(filter openmmlab,$(STACK)),.venv,.venv-$(STACK))
PYTHON ?= python3
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
# SELECT=stack leaves out what is the same in every stack, SELECT=framework also what needs only torch (tests/needs.py).
SELECT ?= all
# torch's own threads serve one process; test processes side by side get one each.
WORKERS ?= 2
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --select $(SELECT)

.PHONY: demo test test-fast test-all test-gpu test-edits zoo checkpoints planted programs fuzz interrupted mutants matrix bench lint format translations dist docs setup clean

demo: setup
	$(BIN)/mmguard demo

# Compiled once: the tests start many processes, and where Python writes no bytecode each would compile all of mmguard.
test: setup
	@$(BIN)/python -m compileall -q mmguard
	$(PYTEST)

test-fast: setup
	$(PYTEST) -m 'not slow'

test-all: $(addprefix test-,$(STACKS))

# The first edit of every situation is followed; labels of all official configs are read. Minutes, so not part of `make test`.
test-edits: setup
	$(PYTEST) -o python_files='test_*.py every_*.py' tests/findings/edits tests/labels/every_official_config.py

# Every head of mmseg and every detector of mmdet trains two iterations on planted labels, and what is counted is compared
# with what was planted. 10 minutes; a skipped one says why it cannot be trained offline. STOCK=1: unguarded, each in a process.
zoo: setup
	$(PYTEST) -rs -o python_files='every_*.py' tests/end_to_end/every_$(if $(STOCK),stock_training,architecture).py

# The same 98 configs on valid labels, stock against guarded: equal checkpoints and losses, bit for bit. Half an hour.
checkpoints: setup
	$(PYTEST) -rs -o python_files='every_*.py' tests/end_to_end/every_checkpoint.py

# What only a GPU shows, and the tests that call losses and guards, there; every other test runs on the CPU, also where there is
# a GPU. `MMGUARD_TEST_GPU=1 make zoo` trains all architectures on it.
test-gpu: setup
	MMGUARD_TEST_GPU=1 $(PYTEST) -m 'not stock_error' $(addprefix tests/,gpu functional nn losses transforms hooks detection \
		end_to_end/test_counts.py end_to_end/test_training_modes.py)

# Faults planted in official configs and in classes of one's own, each to be found by the property of `mmguard dry-run` that is
# meant. 15 minutes.
planted: setup
	$(PYTEST) -o python_files='every_*.py' tests/properties/every_planted_fault.py

# 68 official configs of different heads through all properties: broken is only what a stock training fails at, too. Ten
# minutes on two idle cores.
programs: setup
	$(PYTEST) -o python_files='every_*.py' tests/properties/every_official_program.py

# Damaged inputs of every kind that a command reads, many times as many as `make test` has. Those that break
# a promise are kept as drawn in FUZZ_KEEP. INPUTS=300 SEED=7 KINDS=coco,voc
fuzz: setup
	FUZZ_INPUTS=$(or $(INPUTS),5000) FUZZ_SEED=$(or $(SEED),1) FUZZ_KINDS=$(KINDS) FUZZ_KEEP=$(or $(FUZZ_KEEP),build/fuzz) \
		$(PYTEST) tests/fuzz/test_fuzz.py -rP

# Every command that writes is ended at 20 moments by each signal, and run again. MOMENTS=100
interrupted: setup
	INTERRUPTED_MOMENTS=$(or $(MOMENTS),20) $(PYTEST) tests/interrupted

# 500 mutants of the arithmetic, the labels, the log and the engine of findings (tools/mutants/README.md). DRAW=100 SEED=3
mutants: setup
	sh tools/mutants/run.sh $(VENV) --draw $(or $(DRAW),500) --seed $(or $(SEED),17)

$(addprefix test-,$(STACKS)): test-%:
	$(MAKE) test STACK=$*

# Beside old and new releases of torch, an environment each, removed again: minutes and gigabytes.
#   make matrix TORCH="2.1.2 2.4.1"    only these; KEEP=FOLDER keeps the environments there
#   make matrix OPENMMLAB=1    all tests with mmcv (compiled once), mmseg and mmdet on Python 3.8 and torch 2.1.2
matrix:
	$(PYTHON) tools/matrix.py --workers $(WORKERS) $(if $(KEEP),--keep $(KEEP)) $(if $(OPENMMLAB),--openmmlab) $(TORCH)

bench: setup
	$(BIN)/python -m benchmarks

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo --no-cache
	tools/prose.sh
	$(BIN)/python tools/style.py

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Texts that are missing in the Chinese catalogue, and its compiled form.
translations: setup
	PYTHONPATH=. $(BIN)/python tools/translations.py

# Sdist and wheel in dist/, checked, installed into a clean environment of the lab stack; the demo runs from there.
dist:
	$(MAKE) setup STACK=lab
	sh tools/dist.sh .venv-lab

# The documentation as a site, in build/site/html. Needs Python 3.11; neither torch nor mmcv.
docs:
	sh tools/site/build.sh $(PYTHON)

setup: $(STAMP)

$(STAMP): tools/setup.sh tools/compiled.sh tools/stacks/$(STACK).txt pyproject.toml
	@PYTHON=$(PYTHON) sh tools/setup.sh $(STACK) $(VENV)

clean:
	rm -rf .venv .venv-* build dist *.egg-info work_dirs mmguard_demo
