"""What each ecosystem's own files say about how it is checked, one small module for each. Pure."""

from collections.abc import Callable

from mulligan.starter.ecosystems import go, java, make, native, node, php, python, ruby, rust
from mulligan.starter.proposal import Proposal, together
from mulligan.starter.tree import Tree

ECOSYSTEMS: tuple[Callable[[Tree], Proposal | None], ...] = (
    python.propose,
    node.propose,
    go.propose,
    rust.propose,
    java.propose,
    ruby.propose,
    php.propose,
    native.propose,
)


def propose(tree: Tree) -> Proposal:
    """Propose set-up lines and checks; a Makefile counts where CI uses it, or nothing else does."""
    by_make = make.propose(tree)
    if by_make and make.is_used(tree):
        return by_make
    found = [proposal for each in ECOSYSTEMS if (proposal := each(tree)) and proposal.checks]
    return together(found or ([by_make] if by_make else []))
