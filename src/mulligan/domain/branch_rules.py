"""Find the rules of a repository's branches that would refuse Mulligan's work (RULES-1). Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mulligan.domain.host import Diagnosis, fault, note, warning
from mulligan.domain.patterns import PatternError, expression

MIB = 1024**2

SIGNED_COMMITS = "docs/github.md#signed-commits"


@dataclass(frozen=True, slots=True)
class BranchRule:
    """A rule that applies to a branch, as GitHub reports it.

    `operator`, `pattern` and `negated` belong to a pattern; `paths` are paths or extensions, and
    `limit` is a number of characters or MiB. `source` names who made it.
    """

    kind: str
    operator: str = ""
    pattern: str = ""
    negated: bool = False
    paths: tuple[str, ...] = ()
    limit: int = 0
    source: str = ""


@dataclass(frozen=True, slots=True)
class Publication:
    """An example of what Mulligan pushes to a repository, and how.

    `signs` is whether its commits are signed. `merges` and `deletes` are whether it merges the base
    branch into its own one, and deletes its own one at the end.
    """

    branch: str
    base: str
    message: str
    email: str
    max_file_bytes: int
    signs: bool = False
    merges: bool = False
    deletes: bool = False


def find_obstacles(
    area: str, ours: Publication, on_branch: Sequence[BranchRule], on_base: Sequence[BranchRule]
) -> Iterator[Diagnosis]:
    """Yield each rule that would refuse a push of Mulligan's, or the merge of its pull request.

    A rule that is on both branches is named once.
    """
    found = dict[str, Diagnosis]()
    for rule in on_branch:
        for each in (*_refused_push(area, rule, ours), *_refused_content(area, rule, ours)):
            found.setdefault(each.message, each)
    for rule in on_base:
        for each in _refused_content(area, rule, ours):
            found.setdefault(each.message, each)
    yield from found.values()


def _exempt(ours: Publication, rule: BranchRule) -> str:
    """Return the advice for a rule that does not fit branches of an automation."""
    directory = f"{ours.branch.rpartition('/')[0]}/**"
    return (
        f"Exclude the branches `{directory}` from it, or add Mulligan's account to its bypass list"
        f"{_of(rule)}."
    )


def _of(rule: BranchRule) -> str:
    return f" (ruleset of {rule.source})" if rule.source else ""


FOR_BASE_BRANCHES = {
    "pull_request": "requires a pull request for each change",
    "required_status_checks": "requires status checks before a push",
    "required_deployments": "requires deployments before a push",
    "workflows": "requires workflows before a push",
    "merge_queue": "requires the merge queue",
}
"""Rules for base branches: on Mulligan's own branch, they refuse its pushes."""


def _refused_push(area: str, rule: BranchRule, ours: Publication) -> Iterator[Diagnosis]:
    """Yield what a rule on Mulligan's own branch refuses, whatever the commits are."""
    branch, advice = ours.branch, _exempt(ours, rule)
    match rule.kind:
        case "creation":
            message = f"A rule allows only some people to create branches such as {branch}."
            yield fault(area, message, advice)
        case "update":
            message = f"A rule allows only some people to push to branches such as {branch}."
            yield fault(area, message, advice)
        case "branch_name_pattern":
            yield from _judged(area, rule, "branch names", branch, advice)
        case "non_fast_forward":
            yield warning(
                area,
                f"A rule forbids force pushes to branches such as {branch}. Mulligan replaces its"
                " commit after a review that requests changes, and would be refused.",
                advice,
            )
        case "required_linear_history" if ours.merges:
            yield warning(
                area,
                f"A rule requires a linear history on branches such as {branch}, so Mulligan cannot"
                " merge the base branch into them (`update_branch: true`).",
                f"{advice} Or remove update_branch.",
            )
        case "deletion" if ours.deletes:
            yield warning(
                area,
                f"A rule forbids the deletion of branches such as {branch}. They stay after the"
                " merge.",
                f"{advice} Or set `pull_request: {{delete_branch: false}}`.",
            )
        case kind if kind in FOR_BASE_BRANCHES:
            message = f"A rule on branches such as {branch} {FOR_BASE_BRANCHES[kind]}."
            yield fault(area, f"{message} It refuses Mulligan's pushes.", advice)
        case _:
            return


def _refused_content(area: str, rule: BranchRule, ours: Publication) -> Iterator[Diagnosis]:
    """Yield what a rule on either branch refuses because of the commits and their files."""
    match rule.kind:
        case "required_signatures":
            yield from _signatures(area, ours)
        case "commit_message_pattern":
            advice = f"Change that rule, or exempt Mulligan's account from it{_of(rule)}."
            yield from _judged(area, rule, "commit messages", ours.message, advice)
        case "commit_author_email_pattern" | "committer_email_pattern":
            advice = "Set an address that it accepts in `commit: {email: …}` of the policy."
            yield from _judged(area, rule, "email addresses of commits", ours.email, advice)
        case "file_path_restriction":
            yield _about_files(area, "files", rule.paths)
        case "file_extension_restriction":
            yield _about_files(area, "files that end with", rule.paths)
        case "max_file_path_length":
            message = f"A rule refuses pushes with a path of more than {rule.limit} characters."
            yield note(area, message, "Do not label issues that need longer paths.")
        case "max_file_size" if ours.max_file_bytes > rule.limit * MIB:
            limit = rule.limit * MIB
            yield warning(
                area,
                f"A rule refuses pushes of files over {rule.limit} MB, and the policy allows"
                f" {ours.max_file_bytes} bytes.",
                f"Set `scope: {{max_file_bytes: {limit}}}`, so that an attempt fails early.",
            )
        case _:
            return


def _about_files(area: str, which: str, names: Sequence[str]) -> Diagnosis:
    shown = ", ".join(names[:5]) + (", …" if len(names) > len(names[:5]) else "")
    advice = "Write the same paths under `scope.deny`, so that an attempt does not change them."
    return note(area, f"A rule refuses pushes that change {which}: {shown}.", advice)


def _signatures(area: str, ours: Publication) -> Iterator[Diagnosis]:
    if not ours.signs:
        yield fault(
            area,
            "A rule requires signed commits, and Mulligan's commits are not signed.",
            f"Set github.signing_key_file in mulligan.yml ({SIGNED_COMMITS}).",
        )
    elif belongs_to_nobody(ours.email):
        yield fault(
            area,
            f"A rule requires verified signatures. GitHub verifies no commit of {ours.email}, since"
            " that address belongs to no account.",
            "Set `commit: {email: …}` in the policy to an address of the account with the key.",
        )


def belongs_to_nobody(email: str) -> bool:
    """Return whether an address can be no account's: it has a reserved domain (RFC 2606)."""
    return email.endswith((".invalid", ".example", ".test", ".localhost"))


def _judged(area: str, rule: BranchRule, what: str, text: str, advice: str) -> Iterator[Diagnosis]:
    """Yield a fault if a pattern refuses an example of Mulligan's, or a note if nobody knows."""
    how = "must not" if rule.negated else "must"
    wanted = f"A rule says that {what} {how} {_words(rule)}"
    example = text.partition("\n")[0]
    is_accepted = accepts(rule, text)
    if is_accepted is None:
        message = f"{wanted}. Mulligan cannot read that pattern."
        yield note(area, message, f"Check that it accepts `{example}`.")
    elif not is_accepted:
        yield fault(area, f"{wanted}. It refuses Mulligan's, such as `{example}`.", advice)


def _words(rule: BranchRule) -> str:
    verbs = {
        "starts_with": "start with",
        "ends_with": "end with",
        "contains": "contain",
        "regex": "match",
    }
    return f"{verbs.get(rule.operator, rule.operator)} `{rule.pattern}`"


def accepts(rule: BranchRule, text: str) -> bool | None:
    """Return whether the pattern of a rule accepts a text; None if it cannot be read.

    GitHub's regular expressions are RE2's, which is why Mulligan can judge them.
    """
    match rule.operator:
        case "starts_with":
            found = text.startswith(rule.pattern)
        case "ends_with":
            found = text.rstrip("\n").endswith(rule.pattern)
        case "contains":
            found = rule.pattern in text
        case "regex":
            try:
                found = expression(rule.pattern).search(text) is not None
            except PatternError:
                return None
        case _:
            return None
    return found is not rule.negated


@dataclass(frozen=True, slots=True)
class ClassicProtection:
    """The classic protection of the base branch, as far as it concerns Mulligan."""

    signatures: bool = False
    linear_history: bool = False


def rules_of(protection: ClassicProtection) -> tuple[BranchRule, ...]:
    """Return the rules that a classic protection stands for."""
    kinds = {
        "required_signatures": protection.signatures,
        "required_linear_history": protection.linear_history,
    }
    return tuple(BranchRule(kind) for kind, is_set in kinds.items() if is_set)
