# `make demo` and `make test` do their whole set-up on a fresh Debian machine.

VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
CORES := */core */core/* runtime/arenite/runtime/targets/*/core
NATIVE := CMakeLists.txt $(wildcard $(foreach core,$(CORES),$(addprefix $(core)/,CMakeLists.txt *.cpp *.hpp *.fbs)))
FOLDERS := bench cli compression docs pipeline planner runtime scripts strategies tests training

.DEFAULT_GOAL := help
.PHONY: help demo test arm-wheels test-arm test-mcu test-packages torch lint docs unit bench fuzz clean

help:
	@echo "make demo   plan a real model, run it whole and in bands of rows, make a page of it"
	@echo "make test   lint, type-check and test everything"
	@echo "make arm-wheels cross-compile wheels, the C library and arenite-run for ARM"
	@echo "make test-arm   run these on emulated ARM machines"
	@echo "make test-mcu   run models as C source on emulated microcontroller boards"
	@echo "make test-packages build exported C source with Arduino's, ESP-IDF's and other systems' tools"
	@echo "make torch  install PyTorch for its tests, the CPU build, where pip finds one, and ExecuTorch"
	@echo "make docs   build the documentation into build/site"
	@echo "make bench  print the figures that the documentation states"
	@echo "make fuzz   throw random problems and damaged files at the native code, under the sanitizers,"
	@echo "            and damaged files at every command; run random networks at sizes of a range"
	@echo "make clean  remove everything that was built"

# The environment: Debian packages where they are missing, then the project, editable,
# with every optional package. Modules are compiled when they are imported: most never are.
$(STAMP): pyproject.toml $(NATIVE) scripts/debian-packages.sh scripts/constraints.txt
	scripts/debian-packages.sh
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --no-compile --constraint scripts/constraints.txt \
	  --editable '.[all,bench,dev,docs]'
	touch $@

demo: $(STAMP)
	@scripts/demo.sh $(BIN)

test: lint docs unit

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	find $(FOLDERS) -name build -prune -o -name '*.[ch]' -print -o -name '*.[ch]pp' -print | \
	  xargs $(BIN)/clang-format --dry-run --Werror
	$(BIN)/codespell

docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

unit: $(STAMP)
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder

arm-wheels: $(STAMP)
	@scripts/build-arm.sh $(BIN)/python

test-arm: $(STAMP)
	@scripts/test-arm.sh $(BIN)/python -rP

test-mcu: $(STAMP)
	@scripts/test-mcu.sh $(BIN)/python

test-packages: $(STAMP)
	@scripts/test-packages.sh $(BIN)/python

torch: $(STAMP)
	@scripts/install-torch.sh $(BIN)/python
	@scripts/install-executorch.sh $(BIN)/python

bench: $(STAMP)
	$(BIN)/python -m bench run all

fuzz: $(STAMP)
	$(MAKE) --silent -C strategies/fuzz BUILD=$(CURDIR)/build/fuzz COUNT=10000
	ARENITE_FUZZ_COUNT=10000 $(BIN)/python -m pytest tests/runtime/test_fuzz.py
	PYTHONPATH=tests $(BIN)/python -m support.flip_files 2000
	PYTHONPATH=tests $(BIN)/python -m support.range_fuzz 1000

clean:
	rm -rf $(VENV) build out .mypy_cache .pytest_cache .ruff_cache .hypothesis
