"""The simulated GitHub with all that people do there in tests, besides what the demo needs."""

import copy
from collections.abc import Sequence

from github_simulator import issues, pulls
from github_simulator.records import Event, Issue, IssueLike, IssueName, Permission, Pull
from github_simulator.reply import ErrorReply
from github_simulator.world import World as DemoWorld


class World(DemoWorld):
    """A simulated GitHub on which the people of a test act."""

    def delete_user(self, login: str) -> None:
        """Delete an account; its actions stay, without a name."""
        with self.lock:
            self.users.pop(login.lower()).is_gone = True

    def rename_user(self, login: str, new: str) -> None:
        """Rename an account; the old login becomes available."""
        with self.lock:
            user = self.users.pop(login.lower())
            user.login = new
            self.users[new.lower()] = user
            for repository in self.repositories.values():
                if role := repository.collaborators.pop(login.lower(), None):
                    repository.collaborators[new.lower()] = role

    def set_role(self, full_name: str, login: str, role: str, name: str | None = None) -> None:
        """Set a user's role; `none` removes it, and a name makes a custom role based on `role`."""
        with self.lock:
            repository = self.repository(full_name)
            repository.collaborators.pop(login.lower(), None)
            repository.role_names.pop(login.lower(), None)
            if Permission(role) is not Permission.NONE:
                repository.collaborators[login.lower()] = Permission(role)
            if name:
                repository.role_names[login.lower()] = name

    def archive(self, full_name: str) -> None:
        """Make a repository read-only."""
        with self.lock:
            self.repository(full_name).archived = True

    def rename_repository(self, full_name: str, name: str) -> None:
        """Rename a repository; requests for the old name are redirected."""
        with self.lock:
            repository = self.repositories.pop(full_name.lower())
            self.former_names[full_name.lower()] = repository
            repository.name = name
            self.repositories[repository.full_name.lower()] = repository

    def comment(self, ref: IssueLike, body: str, author: str) -> int:
        """Add a comment; return its id."""
        with self.lock:
            by = self.doer(ref.repository, author)
            return issues.add_comment(by, self.issue(ref), body).id

    def edit(
        self, ref: IssueLike, actor: str, *, title: str | None = None, body: str | None = None
    ) -> None:
        """Change the title or the body."""
        with self.lock:
            issues.edit(self.doer(ref.repository, actor), self.issue(ref), title, body)

    def close(self, ref: IssueLike, actor: str) -> None:
        """Close an issue, or a pull request without merging it."""
        with self.lock:
            issues.set_state(self.doer(ref.repository, actor), self.issue(ref), "closed")

    def reopen(self, ref: IssueLike, actor: str) -> None:
        """Reopen an issue."""
        with self.lock:
            issues.set_state(self.doer(ref.repository, actor), self.issue(ref), "open")

    def set_lock(self, ref: IssueLike, actor: str, *, locked: bool) -> None:
        """Lock or unlock the conversation."""
        with self.lock:
            by, issue = self.doer(ref.repository, actor), self.issue(ref)
            if issue.locked != locked:
                issue.locked = locked
                issues.record(by, issue, issues.new_event(by, "locked" if locked else "unlocked"))

    def delete(self, ref: IssueLike) -> None:
        """Delete an issue; reading it then returns 410."""
        with self.lock:
            self.issue(ref).deleted = True

    def transfer(self, ref: IssueLike, full_name: str, actor: str) -> IssueName:
        """Transfer an issue to another repository; reading it is redirected."""
        with self.lock:
            issue = self.issue(ref)
            moved = self.open_issue(full_name, issue.title, issue.body, issue.author.login)
            issue.moved_to = (full_name, moved.number)
            by = self.doer(full_name, actor)
            issues.record(by, self.issue(moved), issues.new_event(by, "transferred"))
            return moved

    def convert(self, ref: IssueLike, actor: str) -> None:
        """Convert an issue to a discussion; the issue itself is closed and locked."""
        with self.lock:
            by, issue = self.doer(ref.repository, actor), self.issue(ref)
            issues.record(by, issue, issues.new_event(by, "converted_to_discussion"))
            issues.set_state(by, issue, "closed")
            self.set_lock(ref, actor, locked=True)

    def delete_label(self, full_name: str, name: str) -> None:
        """Delete a label of a repository."""
        with self.lock:
            by = self.doer(full_name, full_name.partition("/")[0])
            if label := by.repository.label(name):
                issues.delete_label(by, label)

    def review(
        self,
        ref: IssueLike,
        author: str,
        event: str,
        body: str = "",
        notes: Sequence[pulls.LineComment] = (),
    ) -> int:
        """Submit a review: APPROVE, REQUEST_CHANGES or COMMENT; return its id."""
        with self.lock:
            by, pull = self.doer(ref.repository, author), self._pull(ref)
            self.follow_branches(by.repository)
            answer = (event, body)
            return pulls.submit_review(by, self.issue(ref), pull, answer, notes).id

    def dismiss(self, ref: IssueLike, actor: str, review: int) -> None:
        """Dismiss a review."""
        with self.lock:
            by = self.doer(ref.repository, actor)
            pulls.dismiss(by, self.issue(ref), self._pull(ref), review)

    def merge(self, ref: IssueLike, actor: str) -> str:
        """Merge a pull request in the bare repository; return the merge commit."""
        with self.lock:
            by = self.doer(ref.repository, actor)
            self.follow_branches(by.repository)
            return pulls.merge(by, self.issue(ref), self._pull(ref))

    def mark_ready(self, ref: IssueLike, actor: str) -> None:
        """Mark a draft as ready for review."""
        with self.lock:
            pulls.mark_ready(self.doer(ref.repository, actor), self.issue(ref), self._pull(ref))

    def events_of(self, ref: IssueLike) -> list[Event]:
        """List the events, oldest first."""
        with self.lock:
            return list(self.issue(ref).events)

    def pulls_of(self, full_name: str) -> list[Issue]:
        """List the pull requests, oldest first; `pull` has their own fields."""
        with self.lock:
            repository = self.repository(full_name)
            self.follow_branches(repository)
            return copy.deepcopy([issue for issue in repository.visible() if issue.pull])

    def _pull(self, ref: IssueLike) -> Pull:
        pull = self.issue(ref).pull
        if pull is None:
            raise ErrorReply(404, f"{ref.repository}#{ref.number} is not a pull request.")
        return pull
