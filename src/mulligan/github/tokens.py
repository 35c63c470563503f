"""What is good to know about a token, by its kind, which its first letters tell. Pure.

GitHub's docs list the kinds under "GitHub's token formats".
"""

CLASSIC = (
    "The token is a classic one: it may do all that its account may, in every repository.",
    (
        "A fine-grained token, or an App (github.app), can be kept to the repositories that are "
        "served; a classic one needs the scope repo."
    ),
)
FINE_GRAINED = (
    "The token is fine-grained, and GitHub does not tell what it may do.",
    (
        "It needs read and write access to Contents, Issues and Pull requests of each repository, "
        "and read access to Checks, Commit statuses and Actions where watch_ci is on."
    ),
)
OF_AN_INSTALLATION = (
    (
        "The token is that of a workflow run (GITHUB_TOKEN) or of an App's installation: it ends "
        "with the job, or after an hour."
    ),
    (
        "Let a long-lived worker act as an App itself (github.app). Pull requests that "
        "GITHUB_TOKEN opens start no workflows, and GitHub stops schedules after 60 days without "
        "activity in the repository."
    ),
)
OF_A_SESSION = (
    "The token is one that an application was given for a person, which may end within hours.",
    "Use a fine-grained token, or an App (github.app).",
)
KINDS = {
    "ghp_": CLASSIC,
    "github_pat_": FINE_GRAINED,
    "ghs_": OF_AN_INSTALLATION,
    "gho_": OF_A_SESSION,
    "ghu_": OF_A_SESSION,
}

Note = tuple[str, str]
"""What is so, and what can be done about it."""


def notes_on(token: str | None) -> tuple[Note, ...]:
    """Say what its kind brings with it; nothing about one of a kind that is not known."""
    return tuple(said for start, said in KINDS.items() if (token or "").startswith(start))
