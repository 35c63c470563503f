"""Users, repositories, who may do what in them, and the rate limit."""

from mulligan.domain.issue import Permission
from mulligan.simulator import shapes
from mulligan.simulator.call import Call
from mulligan.simulator.records import User
from mulligan.simulator.refused import Refused, not_found
from mulligan.simulator.reply import Reply
from mulligan.simulator.repository_shapes import repository as repository_shape
from mulligan.simulator.shapes import Shape

SINCE = "2020-01-01T00:00:00Z"
"""When everybody joined."""

MUST_PUSH = "Must have push access to view"


def me(call: Call) -> Reply:
    """Tell whose token it is; that of an app may not ask."""
    if call.someone().login.endswith("[bot]"):
        raise Refused(403, "Resource not accessible by integration")
    return Reply(200, _profile(call, call.someone()))


def person(call: Call) -> Reply:
    """Show an account."""
    return Reply(200, _profile(call, _find(call)))


def repository(call: Call) -> Reply:
    """Show a repository."""
    role = call.repository().role_of(call.user)
    shape = repository_shape(call.place, role, signed_in=call.user is not None)
    return Reply(200, shape)


def permission(call: Call) -> Reply:
    """Tell a user's role; on a public repository anybody may at least read."""
    _push_access(call, "collaborator permission")
    login = call.params["login"]
    user = call.world.users.get(login.lower())
    if user is None:
        raise Refused(404, f"{login} is not a user")
    repository = call.repository()
    role, name = repository.role_of(user), repository.role_names.get(login.lower())
    return Reply(200, shapes.permission(call.base, user, role, name))


def collaborators(call: Call) -> Reply:
    """List who was given a role."""
    _push_access(call, "repository collaborators")
    repository = call.repository()
    users = [repository.owner, *(call.world.users[login] for login in repository.collaborators)]
    return call.page(users, lambda user: shapes.user(call.base, user))


def collaborator(call: Call) -> Reply:
    """Tell by the status alone whether a user was given a role."""
    _push_access(call, "repository collaborators")
    return _yes_or_no(call)


def assignees(call: Call) -> Reply:
    """List who can be assigned."""
    repository = call.repository()
    users = [repository.owner, *(call.world.users[login] for login in repository.collaborators)]
    return call.page(users, lambda user: shapes.user(call.base, user))


def assignee(call: Call) -> Reply:
    """Tell by the status alone whether a user can be assigned."""
    call.repository()
    return _yes_or_no(call)


def rate_limit(call: Call) -> Reply:
    """Tell what is left; asking costs nothing."""
    window = call.world.meter.window(call.user.login if call.user else "")
    rate: Shape = {**window.numbers, "resource": "core"}
    return Reply(200, {"resources": {"core": rate}, "rate": rate})


def _profile(call: Call, user: User) -> Shape:
    unsaid = ("company", "location", "email", "hireable", "bio")
    none_of = ("public_repos", "public_gists", "followers", "following")
    return {
        **shapes.user(call.base, user),
        "name": user.login,
        **dict.fromkeys(unsaid),
        **dict.fromkeys(none_of, 0),
        "blog": "",
        "created_at": SINCE,
        "updated_at": SINCE,
    }


def _find(call: Call) -> User:
    user = call.world.users.get(call.params["login"].lower())
    if user is None:
        raise not_found()
    return user


def _push_access(call: Call, what: str) -> None:
    call.someone()
    if not call.repository().role_of(call.user).reaches(Permission.WRITE):
        raise Refused(403, f"{MUST_PUSH} {what}.")


def _yes_or_no(call: Call) -> Reply:
    if not call.repository().is_collaborator(_find(call)):
        raise not_found()
    return Reply(204)


REPO = "/repos/{owner}/{repo}"
ROUTES = (
    ("GET", "/user", me),
    ("GET", "/users/{login}", person),
    ("GET", "/rate_limit", rate_limit),
    ("GET", REPO, repository),
    ("GET", f"{REPO}/collaborators", collaborators),
    ("GET", f"{REPO}/collaborators/{{login}}", collaborator),
    ("GET", f"{REPO}/collaborators/{{login}}/permission", permission),
    ("GET", f"{REPO}/assignees", assignees),
    ("GET", f"{REPO}/assignees/{{login}}", assignee),
)
