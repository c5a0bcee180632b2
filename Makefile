# make compare   set-up, then the main job: four estimators x three seeds on generated ALFWorld games
# make test      set-up, then every check and test
# make setup     only .venv
# make browser   Chromium and its driver for the browser shop, from Debian's packages, where they can be installed
#
# PYTHON   the interpreter to build .venv from (3.11 or newer)
# TORCH    the PyTorch requirement, installed first, so that you choose the build:
#          make setup TORCH="torch==2.13.0 --index-url ADDRESS", with the address that PyTorch's install selector prints for your CUDA version
# ARGS     passed on to scripts.compare or pytest

PYTHON ?= python3
TORCH ?= torch==2.13.0
ARGS ?=
VENV := .venv
RUN := $(VENV)/bin/python
export HF_HUB_DISABLE_TELEMETRY := 1

.PHONY: setup browser test compare lint clean

setup: $(VENV)/ready

$(VENV)/ready: pyproject.toml constraints.txt Makefile
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "MileGPO needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Run: make PYTHON=/path/to/python3.11 ...")'
	@command -v c++ >/dev/null || { echo "textworld's planner is compiled on install and needs a C++ compiler and make (Debian: apt-get install build-essential)"; exit 1; }
	test -x $(RUN) || $(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet $(TORCH)
	$(RUN) -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $@

# Without Chromium nothing fails: what needs it skips, and says so.
browser:
	@if command -v chromium chromedriver >/dev/null; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y chromium chromium-driver fonts-dejavu-core >/dev/null \
		|| echo "Chromium could not be installed; the browser tests will skip"; \
	else echo "No Chromium: the browser tests will skip. Debian: sudo apt-get install chromium chromium-driver"; fi

compare: setup
	$(RUN) -m scripts.compare $(ARGS)

lint: setup
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy
	$(VENV)/bin/lint-imports

test: lint browser
	OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 $(RUN) -m pytest --numprocesses 2 --dist loadfile $(ARGS)

clean:
	rm -rf $(VENV) build dist *.egg-info
