# All commands for people and CI. Each target first installs its dependencies.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
TOOLS := .venv/.tools
# With this variable, each worker of the tests would compile every module again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: install tools demo test test-deep soak mutants coverage site release-check image-check check check-agents bench bench-check bench-limits bench-digest bench-fleet bench-retry docs format update clean

install: $(STAMP)

$(STAMP): pyproject.toml requirements/runtime.txt requirements/build.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Mulligan needs Python 3.11 or newer; name one with: make PYTHON=python3.12")'
	@echo "1/3 Making a Python environment in .venv"
	@$(PYTHON) -m venv .venv
	@echo "2/3 Installing $$(grep -c == requirements/runtime.txt) libraries, about 25 MB to download"
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/runtime.txt -r requirements/build.txt
	@echo "3/3 Installing Mulligan: $(BIN)/mulligan"
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m compileall -q src
	@touch $(STAMP)

# The tools of the targets below: for tests, checks, documentation and releases.
$(TOOLS): $(STAMP) requirements/dev.txt
	@echo "Installing the tools for tests and checks, about 200 MB to download"
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@touch $(TOOLS)

tools: $(TOOLS)

demo: install
	$(BIN)/mulligan demo

test: tools
	$(BIN)/pytest

# The slow tests: a kill before and after every write, the same stories on emulate, PostgreSQL and the
# command line, and many examples of each property.
test-deep: tools
	$(BIN)/pytest -m "deep or hypothesis" --hypothesis-profile=deep

# A part of test-deep, about 20 minutes: random kills, faults of GitHub, acts in any order, and a
# simulated day. It prints counts.
soak: tools
	$(BIN)/pytest -q -s -n 0 -m "deep or not deep" tests/soak

# Coverage of the pure modules. Their tables run every line and branch; the simulated GitHub's own
# tests count for its pure modules too.
coverage: tools
	$(BIN)/coverage run -m pytest -q -n 0 -m "pure and not deep"
	$(BIN)/coverage report --show-missing --skip-covered --fail-under=100 --include="$(call pure_in,src/mulligan)"
	$(BIN)/coverage run --append -m pytest -q -n 0 -m "not pure and not deep" --ignore-glob="*browser.py" tests/github_simulator
	$(BIN)/coverage report --show-missing --skip-covered --fail-under=100 --include="$(call pure_in,src)"

pure_in = $(shell grep -rlE --include='*.py' 'Pure\.("""|$$)' $(1) | paste -sd,)

# Plant faults one by one; it fails if no test notices one. About half an hour.
mutants: tools
	PYTHONPATH=tests $(BIN)/python -m mutants.run

# The documentation as a site in build/site; see it with: python3 -m http.server --directory build/site
site: tools
	$(PYTHON) -m venv .venv/site
	.venv/site/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/site.txt
	NO_MKDOCS_2_WARNING=1 .venv/site/bin/mkdocs build --quiet --config-file deploy/site/mkdocs.yml

# Build the files of a release in dist/, and install them in every way into an empty environment.
release-check: tools
	$(PYTHON) -m venv .venv/release
	.venv/release/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/release.txt
	rm -rf dist
	$(BIN)/python -m hatchling build -d dist
	.venv/release/bin/twine check --strict dist/*
	.venv/release/bin/cyclonedx-py requirements --pyproject pyproject.toml --output-reproducible --output-file dist/sbom.cdx.json requirements/runtime.txt
	PATH="$(CURDIR)/.venv/release/bin:$$PATH" $(BIN)/pytest -q -s -n 0 -p no:randomly -m release tests/deploy/test_installed.py

# The image, built by buildah and run by podman, alone and with the compose file; and every documented way
# to install, in a container without Mulligan. It needs root, and the network: where the base cannot be
# pulled, mmdebstrap makes one. Another base: make image-check BASE=NAME
image-check: tools
	$(PYTHON) -m venv .venv/release
	.venv/release/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/release.txt
	BASE="$(BASE)" PATH="$(CURDIR)/.venv/release/bin:$$PATH" $(BIN)/pytest -q -s -n 0 -p no:randomly -m release tests/deploy/test_built_image.py

check: tools
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/lint-imports
	$(BIN)/zizmor --offline --quiet --no-progress --persona pedantic action.yml .github
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-actions action.yml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/*.yml
	$(BIN)/pytest -q -p no:randomly -p no:cacheprovider tests/test_shape.py tests/docs/test_specification.py tests/docs/test_plain_words.py tests/docs/test_documented_commands.py::test_links_and_make_targets_lead_somewhere tests/docs/test_documented_commands.py::test_links_into_a_page_lead_to_a_heading tests/interfaces/test_workflow_text.py

# Run the real coding agents, installed in .agents/, against a scripted model, with loopback only.
# It fails if one cannot be installed. To omit one: make check-agents WITHOUT=gemini
# For the newest releases instead of the tested ones: make check-agents NEWEST=1
check-agents: tools
	NEWEST="$(NEWEST)" PYTHONPATH=tests $(BIN)/python -m world.install_agents .agents $(WITHOUT)
	NEWEST="$(NEWEST)" WITHOUT="$(WITHOUT)" unshare --map-root-user --net sh -c 'ip link set lo up && exec $(BIN)/pytest -q -s -n 2 -p no:randomly -p no:cacheprovider tests/real'

# The benchmarks, on a disk instead of in memory. It writes the figures and their table in
# docs/benchmarks.md, and has no limits.
BENCHES = $(patsubst %,tests/bench/test_%_bench.py,worktree issue ledger)
bench: tools
	BENCH=write PYTEST_DEBUG_TEMPROOT="$${TMPDIR:-/tmp}" $(BIN)/pytest -q -s -n 0 -p no:randomly $(BENCHES)

# The benchmarks without writing; it fails if a stable figure is 1.5 times worse than the committed one.
bench-check: tools
	BENCH=check PYTEST_DEBUG_TEMPROOT="$${TMPDIR:-/tmp}" $(BIN)/pytest -q -s -n 0 -p no:randomly $(BENCHES)

# What a command costs in the sandbox, the sizes of the dashboard's pages, and a pass over a thousand
# repositories; these fail at their limits.
bench-limits: tools
	PYTEST_DEBUG_TEMPROOT="$${TMPDIR:-/tmp}" $(BIN)/pytest -q -s -n 0 -p no:randomly tests/bench/test_sandbox_bench.py tests/bench/test_dashboard_bench.py tests/bench/test_many_repositories_bench.py

# Compare digests of real outputs with four simpler ways to shorten them.
bench-digest: tools
	$(BIN)/pytest -q -s -n 0 -p no:randomly tests/bench/test_digest_bench.py tests/bench/test_hostile_texts_bench.py

# A fleet on several hosts, which are network namespaces: speed, requests, failures. It needs root, and
# about 25 minutes; with fewer issues: make bench-fleet ISSUES=40. It runs in namespaces of its own, so
# that processes, links and hosts end with it, however it ends.
bench-fleet: tools
	mkdir -p /run/netns
	ISSUES=$(or $(ISSUES),300) unshare --net --mount --pid --fork --kill-child --mount-proc sh -c 'mount -t tmpfs netns /run/netns && ip link set lo up && exec $(BIN)/pytest -q -s -n 0 -p no:randomly -m deep tests/bench/test_fleet_bench.py $(ONLY)'

# How often the next attempt fixes a failure, by the content of its prompt. It names the programs that it
# needs, and installs jest, mocha and ESLint from npm into a temporary directory.
bench-retry: tools
	$(BIN)/pytest -q -s -n 0 -p no:randomly tests/bench/test_retry_bench.py

# Write the generated pages of docs/.
docs: tools
	$(BIN)/python docs/generate.py

format: tools
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Pin the newest versions of all dependencies in pyproject.toml; hashes without addresses.
update: tools
	$(BIN)/python -m venv .venv/update
	.venv/update/bin/pip install --quiet uv
	.venv/update/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-strip-extras --no-header --no-annotate pyproject.toml -o requirements/runtime.txt
	.venv/update/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-strip-extras --no-header --no-annotate --extra fleet pyproject.toml -o requirements/fleet.txt
	.venv/update/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-strip-extras --no-header --no-annotate --extra dev pyproject.toml -o requirements/dev.txt
	.venv/update/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-strip-extras --no-header --no-annotate --group build -o requirements/build.txt
	.venv/update/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-strip-extras --no-header --no-annotate --group release -o requirements/release.txt
	.venv/update/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-strip-extras --no-header --no-annotate --group site -o requirements/site.txt

clean:
	rm -rf .venv .mutants .pytest_cache .ruff_cache .hypothesis .coverage
