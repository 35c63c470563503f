"""Ruby: RSpec, Rake and RuboCop, through Bundler where there is a Gemfile. Pure."""

import re

from mulligan.starter.proposal import Proposal, Proposed, lint, suite
from mulligan.starter.tree import Tree

BUNDLE = ("bundle config set --local path vendor/bundle", "bundle install")
GEM = r"""^\s*gem\s*\(?\s*["']{name}["']"""


def propose(tree: Tree) -> Proposal | None:
    """Propose for a repository with a Gemfile, a Rakefile or specs."""
    check = _tests(tree)
    rubocop = "Gemfile" in tree.paths and tree.says(GEM.format(name="rubocop"), "Gemfile")
    checks = [check] if check else []
    if rubocop:
        checks.append(lint("bundle exec rubocop", "Gemfile"))
    if not checks:
        return None
    return Proposal("Ruby", BUNDLE if "Gemfile" in tree.paths else (), tuple(checks))


def _tests(tree: Tree) -> Proposed | None:
    prefix = "bundle exec " if "Gemfile" in tree.paths else ""
    if found := tree.in_ci(r"(?:bundle exec )?(?:rspec|rake)\b.*"):
        return suite(found, "the CI workflow")
    if tree.has(".rspec", "spec/*_spec.rb", "spec/*/*_spec.rb"):
        return suite(f"{prefix}rspec", "spec")
    if re.search(r"TestTask", tree.text("Rakefile")):
        return suite(f"{prefix}rake test", "Rakefile")
    return None
