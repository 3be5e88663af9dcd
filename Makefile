# Everything runs in a virtual environment (.venv, made here on first use); nothing outside the checkout is touched.
PYTHON ?= python3
VENV ?= .venv
ARGS ?=
JOBS ?= 2

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip -qq --disable-pip-version-check
HAS_TORCH := $(BIN)/python -c 'import torch; raise SystemExit(not torch.__version__ >= (2, 11))' 2>/dev/null
TRACES := examples/traces
# Tests run in JOBS processes of one thread each; JOBS=0 runs them in one.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) --dist worksteal
SOURCES := $(shell find csrc -type f) setup.py pyproject.toml

.PHONY: help demo test test-full test-triton aot bench lint clean
help:
	@echo "make demo    replay a real trace: static, cap-accept and compact side by side"
	@echo "make test    run the test suite (ARGS='-k name' selects)"
	@echo "make test-full    the suite with every planted bug and sanitizer case (CI)"
	@echo "make test-triton  the whole suite of the Triton back end, interpreted"
	@echo "make aot     compile the Triton kernels for every target; refuses a spill"
	@echo "make bench   measure"
	@echo "make lint    ruff and mypy"
	@echo "make clean   remove .venv and what was built"
	@echo "PYTHON=... chooses the interpreter, VENV=... the environment, JOBS=... the processes of a test run; a torch >= 2.11 of PYTHON is used as it is"

demo: $(VENV)/.installed
	@$(BIN)/dspark-ops replay $(TRACES)/greedy_small.npz --cost $(TRACES)/cost_cells.json $(ARGS)

test: $(VENV)/.installed
	@$(PYTEST) $(ARGS)

test-full: $(VENV)/.installed
	@DSPARK_FULL=1 $(PYTEST) $(ARGS)

test-triton: $(VENV)/.installed
	@TRITON_INTERPRET=1 $(PYTEST) -k triton $(ARGS)

aot: $(VENV)/.installed
	@$(BIN)/python bench/aot.py $(ARGS)

bench: $(VENV)/.installed
	@$(BIN)/python bench/run.py $(ARGS)

lint: $(VENV)/.lint
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

# An environment with torch and the build tools: one that is already there is used as it is; a new one sees PYTHON's own
# packages only if a fitting torch is among them.
$(VENV)/.ready: requirements-build.txt
	@test -x $(BIN)/python || { $(PYTHON) -m venv --system-site-packages $(VENV) && \
	  { $(HAS_TORCH) || $(PYTHON) -m venv --clear $(VENV); }; }
	@if $(HAS_TORCH); then \
	  $(BIN)/python -c 'import torch; print("Using torch", torch.__version__)'; \
	  grep -v '^torch==' requirements-build.txt > $(VENV)/requirements.txt; \
	else \
	  echo "Installing torch (large; a minute or two)."; \
	  cp requirements-build.txt $(VENV)/requirements.txt; \
	fi
	@$(PIP) install -r $(VENV)/requirements.txt
	@touch $@

# No build isolation: pip would otherwise build against a torch that it fetches for itself, not against the one in use.
$(VENV)/.installed: $(VENV)/.ready $(SOURCES)
	@echo "Building dspark_ops and installing what its tests need (triton is large)."
	@$(PIP) install --no-build-isolation -e '.[test]'
	@$(BIN)/python -c "from dspark_ops._backends import get_backend; print('back end cpu:', get_backend('cpu').available()[1])"
	@touch $@

$(VENV)/.lint: $(VENV)/.installed
	@$(PIP) install 'dspark_ops[lint]'
	@touch $@

clean:
	rm -rf .venv build dist *.egg-info dspark_ops/_C*.so
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .torch_compile_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
