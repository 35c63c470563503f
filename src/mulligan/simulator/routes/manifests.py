"""Apps that are made from a manifest: the form for people, and what its code is exchanged for."""

import json
from datetime import UTC
from urllib.parse import parse_qs, urlencode

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from pydantic import JsonValue

from mulligan.simulator.apps import App
from mulligan.simulator.call import Call
from mulligan.simulator.fields import Fields
from mulligan.simulator.refused import Refused, not_found
from mulligan.simulator.reply import Reply

LONGEST_NAME = 34


def form(call: Call) -> Reply:
    """Take a manifest as GitHub's page does, as if a person agreed, and send the browser back."""
    text = parse_qs(call.body.decode()).get("manifest", [""])[0]
    wanted = Fields.read(text.encode())
    name, back = wanted.required("name"), wanted.required("redirect_url")
    hook = wanted.values.get("hook_attributes")
    if len(name) > LONGEST_NAME or not wanted.text("url") or not _has_url(hook):
        raise Refused(422, "The manifest is not valid.")
    code = f"{call.world.stamps.id():040x}"
    call.world.apps.manifests[code] = json.dumps(wanted.values)
    query = urlencode({"code": code, "state": call.query.get("state", "")})
    return Reply(302, headers={"location": f"{back}?{query}"})


def conversion(call: Call) -> Reply:
    """Make the app that a code stands for, once."""
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


def _has_url(hook: JsonValue) -> bool:
    """Tell whether a webhook has its address, which GitHub wants even of one that is off."""
    return hook is None or (isinstance(hook, dict) and bool(hook.get("url")))


ROUTES = (
    ("POST", "/settings/apps/new", form),
    ("POST", "/organizations/{org}/settings/apps/new", form),
    ("POST", "/app-manifests/{code}/conversions", conversion),
)
