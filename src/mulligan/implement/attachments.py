"""Download what people attached to an issue, once, and give it to the agent (TRUST-6)."""

import shutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from mulligan.domain.attachment import MOST_ATTACHMENTS, MOST_BYTES, Attachment, Withheld
from mulligan.domain.errors import DeniedError, UnavailableError, WorldError
from mulligan.domain.issue import Issue
from mulligan.implement.ports import AttemptContext, Tracker
from mulligan.implement.prompt.manifest import MANIFEST, Manifest, sha256
from mulligan.implement.prompt.prompt import COMMENT_BYTES

if TYPE_CHECKING:
    from mulligan.text.attachments import Link

LONGEST_DOWNLOAD = timedelta(seconds=30)
"""After this time, no other attachment is downloaded."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _File:
    name: str
    content: bytes


def with_attachments(issue: Issue, at: AttemptContext) -> Issue:
    """Add the attachments; their files are artifacts, and in the directory for the agent.

    What an earlier attempt got is not downloaded again.
    """
    directory = directory_of(at)
    shutil.rmtree(directory, ignore_errors=True)
    if not at.policy.pictures:
        return issue
    links = _links(issue, at.context.tracker)
    clock, before = at.context.clock, _files_before(links, at)
    end = clock.now() + LONGEST_DOWNLOAD
    found = list[Attachment]()
    for number, (address, link) in enumerate(links.items(), 1):
        if number > MOST_ATTACHMENTS:
            got = Withheld.TOO_MANY
        elif address in before:
            got = before[address]
        elif clock.now() > end:
            got = Withheld.NO_TIME
        else:
            got = _download(link, at)
        if isinstance(got, Withheld):
            found.append(Attachment(address=address, withheld=got))
        else:
            _write(got, directory, at)
            found.append(Attachment(address=address, name=got.name, sha256=sha256(got.content)))
    return replace(issue, attachments=tuple(found))


def directory_of(at: AttemptContext) -> Path:
    """Return the directory that the agent knows as MULLIGAN_ATTACHMENTS; it may not exist."""
    return at.worktree.private / "attachments"


def _links(issue: Issue, tracker: Tracker) -> Mapping[str, "Link"]:
    """Return the links to uploads by address without a signature, in their order."""
    # Imported only where a text is read: the libraries take 60 ms.
    from mulligan.text.attachments import Link, links_in, without_query  # noqa: PLC0415

    found = dict[str, Link]()
    for link in links_in(issue.body, issue.html, tracker.is_upload):
        found.setdefault(without_query(link.address), link)
    for comment in issue.comments:
        for link in links_in(comment.body, comment.html, tracker.is_upload, most=COMMENT_BYTES):
            found.setdefault(without_query(link.address), link)
    return found


def _download(link: "Link", at: AttemptContext) -> _File | Withheld:
    from mulligan.text.attachments import read_attachment  # noqa: PLC0415

    try:
        content = at.context.tracker.fetch_upload(link.address, MOST_BYTES + 1)
    except DeniedError:
        return Withheld.NOT_FOUND
    except WorldError as error:
        log.warning("attachment_missing", issue=str(at.case.issue.ref), error=str(error))
        return Withheld.NOT_SENT
    got = read_attachment(content, is_picture=link.is_picture)
    if isinstance(got, Withheld):
        return got
    # A text goes through the redactor as all texts do; nobody redacts a picture.
    content = at.context.redactor.content(got.content) if got.is_text else got.content
    return _File(f"{sha256(content)[:8]}.{got.ending}", content)


def _files_before(wanted: Collection[str], at: AttemptContext) -> dict[str, _File]:
    """Return the files that earlier attempts got, by address; without those that are gone."""
    artifacts, ref = at.context.artifacts, at.case.issue.ref
    found = dict[str, _File]()
    for meta in at.case.history:
        name = artifacts.find(ref, meta.number, MANIFEST)
        try:
            manifest = Manifest.model_validate_json(artifacts.read(name) if name else b"{}")
        except (UnavailableError, ValueError):
            continue
        for each in manifest.attachments:
            stored = artifacts.find(ref, meta.number, each.name) if each.name else None
            if stored and each.address in wanted and each.address not in found:
                content = artifacts.read(stored)
                if sha256(content) == each.sha256:
                    found[each.address] = _File(each.name, content)
    return found


def _write(file: _File, directory: Path, at: AttemptContext) -> None:
    """Store a file as an artifact, and where the agent can read it."""
    artifacts = at.context.artifacts
    artifact = artifacts.path(at.case.issue.ref, at.case.status.number, file.name)
    given = directory / file.name
    try:
        artifact.write_bytes(file.content)
        directory.mkdir(exist_ok=True)
        given.write_bytes(file.content)
        given.chmod(0o444)
    except OSError as error:
        raise UnavailableError(
            f"{error.filename} cannot be written ({error.strerror}); free some disk space."
        ) from error
    artifacts.share(artifact)
