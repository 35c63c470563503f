"""Rules of branches, their classic protection, and the signing keys of accounts."""

from github_simulator.bare_repository import BareRepository
from github_simulator.records import Permission, Rule
from github_simulator.reply import ErrorReply, Reply, Shape, not_found
from github_simulator.request import ApiCall
from github_simulator.routes.accounts import REPO

RULESETS = f"{REPO}/rulesets/{{number}}"


def branch_rules(call: ApiCall) -> Reply:
    """List the rules of a branch, which need not exist, to anybody who may read."""
    repository, branch = call.repository(), call.params["branch"]
    found = [each for each in repository.rules if each.applies_to(branch)]
    return call.page(found, lambda each: _rule(repository.full_name, each))


def ruleset(call: ApiCall) -> Reply:
    """Show the ruleset of a rule; each rule has its own."""
    repository = call.repository()
    number = call.params["number"]
    found = next((each for each in repository.rules if str(each.id) == number), None)
    if found is None:
        raise not_found()
    login = call.user.login.lower() if call.user else ""
    at = repository.created_at.isoformat().replace("+00:00", "Z")
    return Reply(
        200,
        {
            "id": found.id,
            "name": f"ruleset-{found.id}",
            "target": "branch",
            "source_type": "Repository",
            "source": repository.full_name,
            "enforcement": "active",
            "node_id": f"RRS_{found.id}",
            "current_user_can_bypass": "always" if login in found.bypassed_by else "never",
            "conditions": {
                "ref_name": {
                    "include": [f"refs/heads/{each}" for each in found.branches],
                    "exclude": [],
                }
            },
            "rules": [_bare_rule(found)],
            "created_at": at,
            "updated_at": at,
        },
    )


def _bare_rule(rule: Rule) -> Shape:
    parameters: Shape = {"parameters": dict(rule.parameters)} if rule.parameters else {}
    return {"type": rule.type, **parameters}


def _rule(full_name: str, rule: Rule) -> Shape:
    source: Shape = {"ruleset_source_type": "Repository", "ruleset_source": full_name}
    return {**_bare_rule(rule), **source, "ruleset_id": rule.id}


def branch(call: ApiCall) -> Reply:
    """Show a branch."""
    repository, name = call.repository(), call.params["branch"]
    sha = BareRepository(repository.bare).branches().get(name)
    if sha is None:
        raise ErrorReply(404, "Branch not found")
    url = f"{call.base}/repos/{repository.full_name}"
    protected = name in repository.protected or any(
        each.applies_to(name) for each in repository.rules
    )
    page = f"{call.base}/{repository.full_name}"
    # Mulligan reads nothing of the commit; its files and people are left out.
    commit: Shape = {
        "sha": sha,
        "node_id": f"C_{sha}",
        "url": f"{url}/commits/{sha}",
        "html_url": f"{page}/commit/{sha}",
        "comments_url": f"{url}/commits/{sha}/comments",
        "commit": {
            "url": f"{url}/git/commits/{sha}",
            "author": None,
            "committer": None,
            "message": "",
            "comment_count": 0,
            "tree": {"sha": sha, "url": f"{url}/git/trees/{sha}"},
        },
        "author": {},
        "committer": {},
        "parents": [],
    }
    shape: Shape = {
        "name": name,
        "commit": commit,
        "_links": {"html": f"{page}/tree/{name}", "self": f"{url}/branches/{name}"},
        "protected": protected,
        "protection": {"enabled": protected},
        "protection_url": f"{url}/branches/{name}/protection",
    }
    return Reply(200, shape)


def protection(call: ApiCall) -> Reply:
    """Show the classic protection of a branch, to administrators only."""
    repository, name = call.repository(), call.params["branch"]
    if not repository.role_of(call.signed_in_user()).reaches(Permission.ADMIN):
        raise not_found()
    settings = repository.protected.get(name)
    if settings is None:
        raise ErrorReply(404, "Branch not protected")
    url = f"{call.base}/repos/{repository.full_name}/branches/{name}/protection"
    signatures: Shape = {
        "url": f"{url}/required_signatures",
        "enabled": "required_signatures" in settings,
    }
    linear: Shape = {"enabled": "required_linear_history" in settings}
    shape: Shape = {
        "url": url,
        "required_signatures": signatures,
        "required_linear_history": linear,
        "allow_force_pushes": {"enabled": "non_fast_forward" not in settings},
    }
    return Reply(200, shape)


def signing_keys(call: ApiCall) -> Reply:
    """List the SSH signing keys of an account, to anybody."""
    user = call.world.users.get(call.params["login"].lower())
    if user is None:
        raise not_found()
    at = call.world.stamps.now().isoformat().replace("+00:00", "Z")
    numbered = enumerate(user.signing_keys, start=1)
    return Reply(
        200,
        [{"id": number, "key": key, "title": "key", "created_at": at} for number, key in numbered],
    )


ROUTES = (
    ("GET", f"{REPO}/rules/branches/{{branch:path}}", branch_rules),
    ("GET", RULESETS, ruleset),
    ("GET", f"{REPO}/branches/{{branch:path}}/protection", protection),
    ("GET", f"{REPO}/branches/{{branch:path}}", branch),
    ("GET", "/users/{login}/ssh_signing_keys", signing_keys),
)
