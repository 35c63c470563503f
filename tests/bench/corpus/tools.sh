#!/bin/sh
# Installs the tools whose outputs are in the corpus (Debian 12): sh tools.sh TOOLS
# Run it as root, for Debian's packages. The Python and JavaScript tools go to TOOLS, which they see as /srv.
set -eu
tools=$(mkdir -p "$1" && cd "$1" && pwd)
apt-get install -y --no-install-recommends bubblewrap python3-venv git golang-go ruby ruby-rspec \
  ruby-minitest rake phpunit php-cli php-xml php-mbstring shellcheck gcc g++ clang lld llvm \
  libclang-rt-14-dev cmake make ninja-build libgtest-dev valgrind bats perl lua5.3 \
  elixir ghc ocaml-nox ocaml-dune r-base-core r-cran-testthat cppcheck rubocop clang-tidy \
  gfortran lua-busted lua-check libxml2-utils gnat fp-compiler guile-3.0 tcl octave \
  php-codesniffer libperl-critic-perl \
  openjdk-17-jdk-headless junit4 junit5 gradle maven maven-debian-helper libsurefire-java \
  libmaven-resources-plugin-java libmaven-compiler-plugin-java checkstyle nodejs npm
inside() { bwrap --dev-bind / / --bind "$tools" /srv "$@"; }
inside /usr/bin/python3 -m venv /srv/venv
inside /srv/venv/bin/pip install -q 'setuptools<81' pytest pytest-xdist pytest-timeout \
  pytest-randomly pytest-cov tox nox nose2 ruff flake8 pylint mypy black isort pre-commit bandit \
  yamllint codespell django sphinx behave robotframework sqlfluff meson
mkdir -p "$tools/js" && echo '{"name": "tools", "version": "1.0.0"}' > "$tools/js/package.json"
inside npm --prefix /srv/js install --no-audit --no-fund jest vitest mocha ava tape jasmine eslint@9 \
  typescript prettier esbuild webpack webpack-cli rollup vite stylelint stylelint-config-standard \
  markdownlint-cli @biomejs/biome oxlint pyright
# Rust: copies of a toolchain with clippy and rustfmt.
mkdir -p "$tools/cargo" && cp -r "${RUSTUP_HOME:-$HOME/.rustup}" "$tools/rustup"
cp -r "${CARGO_HOME:-$HOME/.cargo}/bin" "$tools/cargo/"
