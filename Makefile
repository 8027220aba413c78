# One command per need. Everything lives in .venv, made on first use from the hashed locks in requirements/.

FOR ?= 60s
ARGS ?=
BIN := .venv/bin
SOURCES := pyproject.toml src/weft/__init__.py

.DEFAULT_GOAL := help
.PHONY: run demo test prove check sim soak torture fuzz mutants bench bench-quick docs picture bless lock interop help clean

run: .venv/run.done ## show the product: a fleet measures this machine, its tables answer (FOR=60s)
	$(BIN)/weft demo --for $(FOR) $(ARGS)

demo: .venv/run.done ## the same without an end: stop it with Ctrl-C
	$(BIN)/weft demo $(ARGS)

test: .venv/test.done ## in minutes, some of everything that must hold: style, types of what is shipped, layers, tests
	scripts/check style shipped_types layers tests

prove: .venv/test.done ## what `make test` has no time for: types of tests and benches, the other tests
	scripts/check types prove

check: .venv/test.done ## what takes seconds: style, types, layers, tidy
	scripts/check style types layers tidy

sim: .venv/run.done ## simulate a fleet (ARGS="--seed 7 --explain")
	$(BIN)/weft sim run $(ARGS)

soak: .venv/test.done ## the tests with a night's worth of examples (ARGS="tests/journal")
	$(BIN)/python -m pytest --soak $(ARGS)
	$(if $(ARGS),,$(BIN)/weft torture --for 1h)

torture: .venv/run.done ## a real fabric under drawn faults, judged (FOR=60s ARGS="--seed 7")
	$(BIN)/weft torture --for $(FOR) $(ARGS)

fuzz: .venv/test.done ## run every target of fuzz/ (FOR=60s each)
	scripts/fuzz $(FOR)

mutants: FOR := 10m
mutants: .venv/test.done ## plant small bugs and list those that no test sees (FOR=10m ARGS="src/weft/lake")
	scripts/mutants $(FOR) $(ARGS)

bench: .venv/test.done ## measure, beside peers of the same run; writes var/bench.txt (ARGS="ranges")
	bench/run $(ARGS)

bench-quick: .venv/test.done ## minutes: which figures moved since docs/performance.md; ARGS=--write writes that page anew
	$(BIN)/python -m bench.quick $(ARGS)

interop: .venv/test.done ## what needs programs of the system beside Weft (strace, brokers, other stacks)
	scripts/interop-install
	scripts/check interop

docs: .venv/test.done ## write what is generated: docs/requirements.md and the pages like it
	$(BIN)/python -m pytest -q --prove -m generates --generate $$(grep -rl --include='test_*.py' mark.generates tests)

site: ## build the documentation as static pages, without a warning: var/site/html
	scripts/site

picture: .venv/test.done ## draw docs/console.png anew, in ten minutes; needs Chromium (scripts/interop-install browser)
	$(BIN)/python -m tests.interop.picture

bless: .venv/test.done ## take what happened as what should happen: transcripts, golden files; then read the diff
	WEFT_BLESS=1 $(BIN)/python -m pytest --prove tests/transcripts $(ARGS)

lock: ## resolve requirements/*.in anew; releases younger than a week wait
	scripts/lock

clean: ## remove everything that is made
	rm -rf .venv .lock build dist var .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} +

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.venv/run.done: requirements/build.txt requirements/run.txt $(SOURCES)
	scripts/bootstrap run

.venv/test.done: requirements/build.txt requirements/test.txt $(SOURCES)
	scripts/bootstrap test
