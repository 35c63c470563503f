"""Answers are made up as GitHub makes them."""

import pytest

from github_simulator.reply import (
    ErrorReply,
    Json,
    Reply,
    Resource,
    etag,
    invalid,
    links,
    matches,
    page_of,
    unprocessable,
)

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("refused", "body"),
    [
        (ErrorReply(404, "Not Found"), {"message": "Not Found", "status": "404"}),
        (
            invalid(Resource.LABEL, "name", "already_exists"),
            {
                "message": "Validation Failed",
                "errors": [{"resource": "Label", "field": "name", "code": "already_exists"}],
                "status": "422",
            },
        ),
        (
            unprocessable(Resource.PULL, "No."),
            {
                "message": "Validation Failed",
                "errors": [{"resource": "PullRequest", "code": "custom", "message": "No."}],
                "status": "422",
            },
        ),
        (
            ErrorReply(301, "Moved Permanently", url="http://there"),
            {"message": "Moved Permanently", "url": "http://there", "status": "301"},
        ),
    ],
)
def test_a_refusal_has_githubs_form(refused: ErrorReply, body: dict[str, Json]) -> None:
    docs = {"documentation_url": "https://docs.github.com/rest"}
    assert Reply.of(refused) == Reply(refused.status, {**body, **docs})


def test_an_answer_without_a_body_is_empty() -> None:
    assert (Reply(204).raw, Reply(200, []).raw) == (b"", b"[]")


@pytest.mark.parametrize(
    ("sent", "same"),
    [
        ("", False),
        ('W/"a"', True),
        ('"a"', True),
        ('"b", W/"a"', True),
        ("*", True),
        ('W/"b"', False),
        ("a", False),
    ],
)
def test_etags_are_compared_weakly(sent: str, *, same: bool) -> None:
    assert matches(sent, 'W/"a"') is same


def test_an_etag_names_content_and_token() -> None:
    tags = {etag(raw, token) for raw in (b"", b"x") for token in ("", "token x")}
    assert len(tags) == 4


@pytest.mark.parametrize(
    ("page", "last", "relations"),
    [
        (1, 1, []),
        (1, 3, ["next", "last"]),
        (2, 3, ["prev", "next", "last", "first"]),
        (3, 3, ["prev", "first"]),
        (9, 3, ["prev", "first"]),
    ],
)
def test_links_lead_where_there_is_something(page: int, last: int, relations: list[str]) -> None:
    link = links({"state": "all"}, "http://here", page, last).get("link", "")
    assert [part.partition('rel="')[2].strip('"') for part in link.split(", ") if part] == relations
    assert ("state=all" in link) == bool(relations)


def test_a_page_after_the_last_leads_back_to_the_last() -> None:
    reply = page_of(range(5), int, {"per_page": "2", "page": "7"}, "http://here")
    assert reply.body == []
    assert 'page=3>; rel="prev"' in reply.headers["link"]
