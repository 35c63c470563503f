"""Files that people attached to issues; a picture is read at the address that the API signed."""

from github_simulator.body_html import SIGNED, signature
from github_simulator.reply import Reply, not_found
from github_simulator.request import ApiCall


def picture(call: ApiCall) -> Reply:
    """Show a picture to a caller that has its signed address."""
    upload = call.params["upload"]
    if call.query.get("token") != signature(upload):
        raise not_found()
    return _sent(call, upload)


def file(call: ApiCall) -> Reply:
    """Show a file to anybody, as in a public repository."""
    return _sent(call, f"{call.params['number']}/{call.params['name']}")


def _sent(call: ApiCall, upload: str) -> Reply:
    if upload not in call.world.uploads:
        raise not_found()
    kind = {"content-type": "application/octet-stream"}
    return Reply(200, headers=kind, content=call.world.uploads[upload])


ROUTES = (
    ("GET", f"{SIGNED}{{upload}}", picture),
    ("GET", "/user-attachments/files/{number}/{name}", file),
)
