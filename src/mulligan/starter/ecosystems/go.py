"""Go: `go test`, with the flags that CI gives it, and `go vet`. Pure."""

from mulligan.starter.proposal import Proposal, lint, suite
from mulligan.starter.tree import Tree


def propose(tree: Tree) -> Proposal | None:
    """Propose for a module."""
    if "go.mod" not in tree.paths:
        return None
    setup = ("go mod download",) if "go.sum" in tree.paths else ()
    by_ci = tree.in_ci(r"go test .*")
    run, source = (by_ci, "the CI workflow") if by_ci else ("go test ./...", "go.mod")
    return Proposal("Go", setup, (suite(run, source), lint("go vet ./...", "go.mod")))
