"""Users, repositories, permissions, rate limit, and GitHub Apps with their tokens and manifests."""

import json
from datetime import UTC, timedelta
from urllib.parse import parse_qs, urlencode

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from github_simulator import json_shapes
from github_simulator.json_shapes import repository as repository_shape
from github_simulator.records import App, Permission, TokenGrant, User
from github_simulator.reply import ErrorReply, Reply, Shape, not_found
from github_simulator.request import ApiCall, Fields

REPO = "/repos/{owner}/{repo}"

SINCE = "2020-01-01T00:00:00Z"
"""The creation date of every account."""

MUST_PUSH = "Must have push access to view"

TOKEN_LASTS = timedelta(hours=1)

LONGEST_CLAIM = timedelta(minutes=10)

UNDECODABLE = "A JSON web token could not be decoded"

EXPIRES = "'Expiration' claim ('exp') must be a numeric value representing the future time"

ISSUED = "'Issued at' claim ('iat') must be an Integer representing the time that it was issued"

TOO_FAR = "'Expiration time' claim ('exp') is too far in the future"

LONGEST_APP_NAME = 34


# Users, repositories, permissions and the rate limit.


def me(call: ApiCall) -> Reply:
    """Show the token's user; 403 for an app's token."""
    if call.signed_in_user().login.endswith("[bot]"):
        raise ErrorReply(403, "Resource not accessible by integration")
    return Reply(200, _profile(call, call.signed_in_user()))


def repository(call: ApiCall) -> Reply:
    """Show a repository."""
    role = call.repository().role_of(call.user)
    shape = repository_shape(call.urls, role, signed_in=call.user is not None)
    return Reply(200, shape)


def permission(call: ApiCall) -> Reply:
    """Show a user's role; anybody may read a public repository."""
    _push_access(call, "collaborator permission")
    login = call.params["login"]
    user = call.world.users.get(login.lower())
    if user is None:
        raise ErrorReply(404, f"{login} is not a user")
    repository = call.repository()
    role, name = repository.role_of(user), repository.role_names.get(login.lower())
    return Reply(200, json_shapes.permission(call.base, user, role, name))


def rate_limit(call: ApiCall) -> Reply:
    """Show the remaining requests; this request does not count."""
    window = call.world.meter.window(call.user.login if call.user else "")
    rate: Shape = {**window.numbers, "resource": "core"}
    return Reply(200, {"resources": {"core": rate}, "rate": rate})


def _profile(call: ApiCall, user: User) -> Shape:
    unsaid = ("company", "location", "email", "hireable", "bio")
    none_of = ("public_repos", "public_gists", "followers", "following")
    return {
        **json_shapes.user(call.base, user),
        "name": user.login,
        **dict.fromkeys(unsaid),
        **dict.fromkeys(none_of, 0),
        "blog": "",
        "created_at": SINCE,
        "updated_at": SINCE,
    }


def _push_access(call: ApiCall, what: str) -> None:
    call.signed_in_user()
    if not call.repository().role_of(call.user).reaches(Permission.WRITE):
        raise ErrorReply(403, f"{MUST_PUSH} {what}.")


# Apps and their tokens.


def app(call: ApiCall) -> Reply:
    """Show the authenticated app."""
    found = _app(call)
    return Reply(200, {"id": found.id, "slug": found.slug, "name": found.slug})


def installation(call: ApiCall) -> Reply:
    """Show the app's installation on a repository."""
    found = _app(call)
    if f"{call.params['owner']}/{call.params['repo']}".lower() not in found.repositories:
        raise not_found()
    return Reply(200, {"id": found.installation, "app_id": found.id, "app_slug": found.slug})


def access_token(call: ApiCall) -> Reply:
    """Create a token for some of the installation's repositories."""
    found = _app(call)
    if call.params["number"] != str(found.installation):
        raise not_found()
    known = {name.partition("/")[2]: name for name in found.repositories}
    asked = call.fields.names("repositories") or []
    if any(name.lower() not in known for name in asked):
        message = "There is at least one repository that does not exist or is not accessible."
        raise ErrorReply(422, message)
    names = frozenset(known[name.lower()] for name in asked) or found.repositories
    until = (call.world.stamps.clock() + TOKEN_LASTS).replace(microsecond=0)
    token = f"ghs_{call.world.stamps.id():036d}"
    call.world.tokens[token] = found.user
    call.world.apps.grants[token] = TokenGrant(until, names)
    return Reply(201, {"token": token, "expires_at": until.isoformat().replace("+00:00", "Z")})


def _app(call: ApiCall) -> App:
    """Return the app whose key signed the token; refuse an invalid token with GitHub's error."""
    now = call.world.stamps.clock().timestamp()
    try:
        claims = jwt.decode(call.token, options={"verify_signature": False})
        found = call.world.apps.known[str(claims["iss"])]
        jwt.decode(
            call.token,
            found.public_key,
            ["RS256"],
            options={"verify_exp": False, "verify_iat": False},
        )
    except (jwt.PyJWTError, KeyError):
        raise ErrorReply(401, UNDECODABLE) from None
    if claims["exp"] <= now:
        raise ErrorReply(401, EXPIRES)
    if claims["iat"] > now:
        raise ErrorReply(401, ISSUED)
    if claims["exp"] > now + LONGEST_CLAIM.total_seconds():
        raise ErrorReply(401, TOO_FAR)
    return found


# Apps made from a manifest.


def manifest_form(call: ApiCall) -> Reply:
    """Accept a manifest as if a person confirmed it on GitHub's page, and redirect the browser."""
    text = parse_qs(call.body.decode()).get("manifest", [""])[0]
    wanted = Fields.read(text.encode())
    name, back = wanted.required("name"), wanted.required("redirect_url")
    hook = wanted.values.get("hook_attributes")
    # GitHub requires a webhook's URL even if it is inactive.
    has_url = hook is None or (isinstance(hook, dict) and hook.get("url"))
    if len(name) > LONGEST_APP_NAME or not wanted.text("url") or not has_url:
        raise ErrorReply(422, "The manifest is not valid.")
    code = f"{call.world.stamps.id():040x}"
    call.world.apps.manifests[code] = json.dumps(wanted.values)
    query = urlencode({"code": code, "state": call.query.get("state", "")})
    return Reply(302, headers={"location": f"{back}?{query}"})


def manifest_conversion(call: ApiCall) -> Reply:
    """Create the app of a code; each code works once."""
    kept = call.world.apps.manifests.pop(call.params["code"], None)
    if kept is None:
        raise not_found()
    wanted = Fields.read(kept.encode())
    slug = wanted.required("name").lower().replace(" ", "-")
    key = rsa.generate_private_key(65537, 2048)
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    user, number = call.world.add_user(f"{slug}[bot]", "Bot"), call.world.stamps.id()
    made = App(number, user, public.decode(), call.world.stamps.id(), frozenset())
    call.world.apps.add(made)
    at = call.world.stamps.now().astimezone(UTC).isoformat().replace("+00:00", "Z")
    return Reply(
        201,
        {
            "id": number,
            "slug": slug,
            "node_id": f"A_{number}",
            "client_id": f"Iv1.{number}",
            "name": wanted.required("name"),
            "external_url": wanted.required("url"),
            "html_url": f"{call.base}/apps/{slug}",
            "created_at": at,
            "updated_at": at,
            "permissions": wanted.values.get("default_permissions", {}),
            "events": wanted.values.get("default_events", []),
            "client_secret": "a" * 40,
            "webhook_secret": None,
            "pem": pem.decode(),
        },
    )


ROUTES = (
    ("GET", "/user", me),
    ("GET", "/rate_limit", rate_limit),
    ("GET", REPO, repository),
    ("GET", f"{REPO}/collaborators/{{login}}/permission", permission),
    ("GET", "/app", app),
    ("GET", f"{REPO}/installation", installation),
    ("POST", "/app/installations/{number}/access_tokens", access_token),
    ("POST", "/settings/apps/new", manifest_form),
    ("POST", "/organizations/{org}/settings/apps/new", manifest_form),
    ("POST", "/app-manifests/{code}/conversions", manifest_conversion),
)
