"""Node: the scripts of package.json, run by the package manager that its lock file tells. Pure."""

from collections.abc import Callable

from mulligan.starter.proposal import Proposal, Proposed, lint, suite, types
from mulligan.starter.tree import Tree, keys_of, part

SCRIPTS: tuple[tuple[Callable[[str, str], Proposed], tuple[str, ...]], ...] = (
    (suite, ("test:ci", "test", "test:unit")),
    (lint, ("lint",)),
    (types, ("typecheck", "type-check", "check-types", "tsc")),
)
"""What scripts are called, the first that is there counts."""

PLACEHOLDER = "no test specified"
DEPENDENCIES = ("dependencies", "devDependencies", "optionalDependencies", "workspaces")


def propose(tree: Tree) -> Proposal | None:
    """Propose the scripts for tests, lint and types."""
    if "package.json" not in tree.paths:
        return None
    package, manager = tree.mapping("package.json"), _manager(tree)
    scripts = part(package, "scripts")
    written = scripts if isinstance(scripts, dict) else {}
    real = {name for name, line in written.items() if PLACEHOLDER not in str(line)}
    checks = tuple(
        make(_run(manager, name), f"scripts.{name} of package.json")
        for make, names in SCRIPTS
        for name in [each for each in names if each in real][:1]
    )
    needs = any(keys_of(part(package, key)) or part(package, key) for key in DEPENDENCIES)
    return Proposal("Node", _install(tree, manager) if needs else (), checks)


def _manager(tree: Tree) -> str:
    named = str(part(tree.mapping("package.json"), "packageManager") or "").partition("@")[0]
    locks = {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn", "bun.lock": "bun", "bun.lockb": "bun"}
    by_lock = next((manager for lock, manager in locks.items() if lock in tree.paths), "npm")
    return named if named in {"npm", "pnpm", "yarn", "bun"} else by_lock


def _run(manager: str, script: str) -> str:
    return f"{manager} test" if script == "test" and manager != "bun" else f"{manager} run {script}"


def _install(tree: Tree, manager: str) -> tuple[str, ...]:
    match manager:
        case "pnpm" | "bun":
            return (f"{manager} install --frozen-lockfile",)
        case "yarn":
            frozen = "--immutable" if ".yarnrc.yml" in tree.paths else "--frozen-lockfile"
            return (f"yarn install {frozen}",)
        case _ if tree.has("package-lock.json", "npm-shrinkwrap.json"):
            return ("npm ci --no-audit --no-fund",)
        case _:
            return ("npm install --no-audit --no-fund --no-package-lock",)
