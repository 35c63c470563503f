"""Rust: `cargo test`, and clippy where CI asks for it. Pure."""

from mulligan.starter.proposal import Proposal, lint, suite
from mulligan.starter.tree import Tree


def propose(tree: Tree) -> Proposal | None:
    """Propose for a crate or a workspace; checks are offline, so dependencies come before."""
    if "Cargo.toml" not in tree.paths:
        return None
    locked = " --locked" if "Cargo.lock" in tree.paths else ""
    by_ci = tree.in_ci(r"cargo test(?: .*)?")
    run, source = (by_ci, "the CI workflow") if by_ci else (f"cargo test{locked}", "Cargo.toml")
    checks = [suite(run, source)]
    if clippy := tree.in_ci(r"cargo clippy(?: .*)?"):
        checks.append(lint(clippy, "the CI workflow"))
    return Proposal("Rust", (f"cargo fetch{locked}",), tuple(checks))
