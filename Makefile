# `make demo` and `make test` set up what they need in .venv; nothing is installed elsewhere.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# make android [BUNDLE=folder or zip] [ABI="arm64-v8a x86_64"]; without a bundle, around what the quick start trains.
BUNDLE ?= android_demo/build/bundle
ABI ?= arm64-v8a

.PHONY: android android-test demo test clean

demo: $(STAMP)
	$(BIN)/lite-nmt demo --out demo

android: $(filter android_demo/build/bundle,$(BUNDLE))
	$(PYTHON) -m android_demo.tools.apk --bundle "$(BUNDLE)" --abi $(ABI)

android_demo/build/bundle: | $(STAMP)
	test -e demo/run/model || $(BIN)/lite-nmt demo --out demo
	$(BIN)/lite-nmt export demo/run --precision int8 --out $@

android-test: $(STAMP)
	-$(BIN)/python -m android_demo.tools.prepare
	$(BIN)/pytest tests/android

test: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -n 2 --dist worksteal

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "$$($(PYTHON) --version) is too old; name a Python 3.11 or newer: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $(STAMP)

clean:
	rm -rf $(VENV) demo android_demo/build
