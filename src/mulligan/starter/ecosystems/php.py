"""PHP: Composer's scripts, else PHPUnit and PHPStan. Pure."""

from mulligan.starter.proposal import Proposal, Proposed, lint, suite
from mulligan.starter.tree import Tree, keys_of, part

INSTALL = "composer install --no-interaction --no-progress"


def propose(tree: Tree) -> Proposal | None:
    """Propose for a repository with Composer or PHPUnit."""
    composer = tree.mapping("composer.json")
    scripts = keys_of(part(composer, "scripts"))
    brought = {*keys_of(part(composer, "require-dev")), *keys_of(part(composer, "require"))}
    found = list[Proposed]()
    if "test" in scripts:
        found.append(suite("composer test", "composer.json"))
    elif "phpunit/phpunit" in brought:
        found.append(suite("vendor/bin/phpunit", "composer.json"))
    elif tree.has("phpunit.xml", "phpunit.xml.dist"):
        found.append(suite("phpunit", "phpunit.xml"))
    if "phpstan/phpstan" in brought and tree.has("phpstan.neon", "phpstan.neon.dist"):
        found.append(lint("vendor/bin/phpstan analyse --no-progress", "phpstan.neon"))
    if not found:
        return None
    packages = {name for name in brought if "/" in name}
    return Proposal("PHP", (INSTALL,) if packages else (), tuple(found))
