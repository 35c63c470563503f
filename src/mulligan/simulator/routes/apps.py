"""GitHub Apps: who an app is, where it is installed, and tokens that act for it for an hour."""

from datetime import timedelta

import jwt

from mulligan.simulator.apps import App, Grant
from mulligan.simulator.call import Call
from mulligan.simulator.refused import Refused, not_found
from mulligan.simulator.reply import Reply

LASTS = timedelta(hours=1)
LONGEST = timedelta(minutes=10)
UNDECODABLE = "A JSON web token could not be decoded"
EXPIRES = "'Expiration' claim ('exp') must be a numeric value representing the future time"
ISSUED = "'Issued at' claim ('iat') must be an Integer representing the time that it was issued"
TOO_FAR = "'Expiration time' claim ('exp') is too far in the future"


def app(call: Call) -> Reply:
    """Show the app that asks."""
    found = _app(call)
    return Reply(200, {"id": found.id, "slug": found.slug, "name": found.slug})


def installation(call: Call) -> Reply:
    """Tell under which number the app is installed on a repository."""
    found = _app(call)
    if f"{call.params['owner']}/{call.params['repo']}".lower() not in found.repositories:
        raise not_found()
    return Reply(200, {"id": found.installation, "app_id": found.id, "app_slug": found.slug})


def access_token(call: Call) -> Reply:
    """Make a token for some of the installation's repositories."""
    found = _app(call)
    if call.params["number"] != str(found.installation):
        raise not_found()
    known = {name.partition("/")[2]: name for name in found.repositories}
    asked = call.fields.names("repositories") or []
    if any(name.lower() not in known for name in asked):
        message = "There is at least one repository that does not exist or is not accessible."
        raise Refused(422, message)
    names = frozenset(known[name.lower()] for name in asked) or found.repositories
    until = (call.world.stamps.clock() + LASTS).replace(microsecond=0)
    token = f"ghs_{call.world.stamps.id():036d}"
    call.world.tokens[token] = found.user
    call.world.apps.grants[token] = Grant(until, names)
    return Reply(201, {"token": token, "expires_at": until.isoformat().replace("+00:00", "Z")})


def _app(call: Call) -> App:
    """Find the app whose key signed the token; what is wrong with it is said as GitHub does."""
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
        raise Refused(401, UNDECODABLE) from None
    if claims["exp"] <= now:
        raise Refused(401, EXPIRES)
    if claims["iat"] > now:
        raise Refused(401, ISSUED)
    if claims["exp"] > now + LONGEST.total_seconds():
        raise Refused(401, TOO_FAR)
    return found


ROUTES = (
    ("GET", "/app", app),
    ("GET", "/repos/{owner}/{repo}/installation", installation),
    ("POST", "/app/installations/{number}/access_tokens", access_token),
)
