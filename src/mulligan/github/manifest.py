"""Have GitHub make an App from a manifest: what is asked for, where, and what comes back."""

import json
from html import escape
from urllib.parse import quote, urlencode, urlsplit

from pydantic import Field, JsonValue, TypeAdapter

from mulligan.errors import DeniedError
from mulligan.github.answers import NotFoundError
from mulligan.github.client import Client
from mulligan.github.shapes import Shape

LONGEST_NAME = 34
"""GitHub's own limit for the name of an App."""
PERMISSIONS: dict[str, JsonValue] = {
    **dict.fromkeys(("contents", "issues", "pull_requests"), "write"),
    **dict.fromkeys(("metadata", "checks", "statuses", "actions"), "read"),
}
PAGE = """\
<!doctype html><meta charset="utf-8"><title>Mulligan: make a GitHub App</title>
<p>This asks {host} to make the App <b>{name}</b>. You can look at it there first.</p>
<form method="post" action="{action}"><input type="hidden" name="manifest" value="{manifest}">
<button>Go on to {host}</button></form>
"""


class MadeApp(Shape):
    """An App that was just made; GitHub gives its private key this once."""

    id: int
    html_url: str = Field(min_length=1)
    pem: str = Field(min_length=1, repr=False)

    @property
    def install_url(self) -> str:
        """Give the page on which it is installed on repositories."""
        return f"{self.html_url}/installations/new"


MADE = TypeAdapter(MadeApp)


def web_url(api_url: str) -> str:
    """Give the address for people of the GitHub whose API is there, without a slash at the end."""
    parts = urlsplit(api_url)
    host = parts.netloc
    if host == "api.github.com" or (host.startswith("api.") and host.endswith(".ghe.com")):
        host = host.removeprefix("api.")
    return f"{parts.scheme}://{host}"


def manifest(name: str, homepage: str, back: str) -> dict[str, JsonValue]:
    """Write what the App is to be: rights, no webhook, and where GitHub sends the browser then."""
    return {
        "name": name[:LONGEST_NAME],
        "url": homepage,
        "hook_attributes": {"url": homepage, "active": False},
        "redirect_url": back,
        "public": False,
        "default_permissions": PERMISSIONS,
        "default_events": [],
    }


def page(web: str, organization: str | None, state: str, asked: dict[str, JsonValue]) -> str:
    """Write the page whose button brings the manifest to GitHub, for an account or organisation."""
    whose = f"/organizations/{quote(organization, safe='')}" if organization else ""
    return PAGE.format(
        host=escape(urlsplit(web).netloc),
        name=escape(str(asked["name"])),
        action=escape(f"{web}{whose}/settings/apps/new?{urlencode({'state': state})}"),
        manifest=escape(json.dumps(asked)),
    )


def convert(client: Client, code: str) -> MadeApp:
    """Exchange the code that the browser came back with; it is good once, for an hour."""
    path = f"/app-manifests/{quote(code, safe='')}/conversions"
    try:
        return client.write(MADE, "POST", path, {})
    except NotFoundError as error:
        message = (
            "GitHub does not know the code that the browser brought, which is good once and for "
            "an hour; begin again with `mulligan init --app`."
        )
        raise DeniedError(message) from error
