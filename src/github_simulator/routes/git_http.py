"""Git over HTTP, and Git LFS: for repositories whose clone URL is the simulator's.

https://git-scm.com/docs/http-protocol and the batch API of git-lfs/git-lfs.
"""

import gzip
import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

from pydantic import JsonValue

from github_simulator.bare_repository import serve_pack
from github_simulator.records import Permission, Repository
from github_simulator.reply import ErrorReply, Json, Reply, not_found
from github_simulator.request import ApiCall, Fields

SUFFIX = ".git"

UPLOAD, RECEIVE = "git-upload-pack", "git-receive-pack"

LFS_JSON = {"content-type": "application/vnd.git-lfs+json; charset=utf-8"}

OID = re.compile(r"[0-9a-f]{64}")

SIGNED = "/lfs-objects/"
"""Where objects are downloaded: GitHub's is another host, with a signed address."""


def refs(call: ApiCall) -> Reply:
    """List the refs, as the first request of a fetch or push."""
    service = call.query.get("service", "")
    repository = _repository(call, service)
    protocol = call.headers.get("git-protocol", "")
    head = f"# service={service}\n".encode()
    begin = b"" if "version=2" in protocol else b"%04x%s0000" % (len(head) + 4, head)
    content = begin + serve_pack(repository.bare, service, protocol)
    return _git_reply(f"{service}-advertisement", content)


def pack(call: ApiCall) -> Reply:
    """Answer the second request of a fetch or push."""
    service = call.path.rpartition("/")[2]
    repository = _repository(call, service)
    body = call.body
    if call.headers.get("content-encoding") == "gzip":
        body = gzip.decompress(body)
    protocol = call.headers.get("git-protocol", "")
    return _git_reply(f"{service}-result", serve_pack(repository.bare, service, protocol, body))


def _git_reply(kind: str, content: bytes) -> Reply:
    headers = {"content-type": f"application/x-{kind}", "cache-control": "no-cache"}
    return Reply(200, headers=headers, content=content)


def batch(call: ApiCall) -> Reply:
    """Say where LFS objects are downloaded; uploads are not simulated."""
    repository = _repository(call, UPLOAD, {"lfs-authenticate": 'Basic realm="Git LFS"'})
    fields = Fields.read(call.body).values
    wanted = fields.get("objects")
    if fields.get("operation") != "download" or not isinstance(wanted, list):
        raise ErrorReply(422, "Only downloads are simulated.")
    found: list[Json] = [_object(call, repository, each) for each in wanted]
    return Reply(200, {"transfer": "basic", "objects": found}, LFS_JSON)


def _object(call: ApiCall, repository: Repository, wanted: JsonValue) -> Json:
    oid = str(wanted.get("oid")) if isinstance(wanted, dict) else ""
    place = _place(repository.bare, oid)
    if place is None:
        error: Json = {"code": 404, "message": "Object does not exist on the server"}
        return {"oid": oid, "size": 0, "error": error}
    href = f"{call.base}{SIGNED}{repository.full_name}/{oid}?token={_signature(oid)}"
    download: Json = {"href": href, "expires_in": 3600}
    return {"oid": oid, "size": place.stat().st_size, "actions": {"download": download}}


def download(call: ApiCall) -> Reply:
    """Send an LFS object to a caller that has its signed address."""
    oid = call.params["oid"]
    found = call.world.repositories.get(f"{call.params['owner']}/{call.params['repo']}".lower())
    place = _place(found.bare, oid) if found else None
    if place is None or call.query.get("token") != _signature(oid):
        raise not_found()
    return Reply(
        200, headers={"content-type": "application/octet-stream"}, content=place.read_bytes()
    )


def _repository(
    call: ApiCall, service: str, challenge: Mapping[str, str] | None = None
) -> Repository:
    """Return a repository that the user may read or push to; GitHub asks others to sign in."""
    name = call.params["repo"].removesuffix(SUFFIX)
    found = call.world.repositories.get(f"{call.params['owner']}/{name}".lower())
    if service not in {UPLOAD, RECEIVE}:
        raise ErrorReply(403, "Please upgrade your git client.")
    needed = Permission.READ if service == UPLOAD else Permission.WRITE
    role = found.role_of(call.user) if found else Permission.NONE
    if found and role.reaches(needed) and (call.user or service == UPLOAD):
        return found
    if call.user is None:
        headers = challenge or {"www-authenticate": 'Basic realm="GitHub"'}
        raise ErrorReply(401, "Requires authentication", headers=headers)
    if found and role is not Permission.NONE:
        raise ErrorReply(403, f"Permission to {found.full_name}.git denied to {call.user.login}.")
    raise not_found()


def _place(bare: Path, oid: str) -> Path | None:
    """Return the file of an object, which is where `git lfs push` to a local path puts it."""
    if not OID.fullmatch(oid):
        return None
    place = bare / "lfs" / "objects" / oid[:2] / oid[2:4] / oid
    return place if place.is_file() else None


def _signature(oid: str) -> str:
    return hashlib.sha256(f"signed {oid}".encode()).hexdigest()


def is_of_git(path: str) -> bool:
    """Return whether a path is git's or LFS's: the rate limit of the API does not count these."""
    return bool(OF_GIT.match(path))


OF_GIT = re.compile(rf"/[^/]+/[^/]+/(?:info/(?:refs|lfs/)|{UPLOAD}|{RECEIVE})|{SIGNED}")

IN_REPOSITORY = "/{owner}/{repo}"

ROUTES = (
    ("GET", f"{IN_REPOSITORY}/info/refs", refs),
    ("POST", f"{IN_REPOSITORY}/{UPLOAD}", pack),
    ("POST", f"{IN_REPOSITORY}/{RECEIVE}", pack),
    ("POST", f"{IN_REPOSITORY}/info/lfs/objects/batch", batch),
    ("GET", f"{SIGNED}{{owner}}/{{repo}}/{{oid}}", download),
)
"""No other path of the API has two free parts at its beginning."""
