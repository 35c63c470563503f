"""Nobody sees the dashboard without its key, and no page elsewhere can make use of a browser."""

import stat
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from mulligan.domain.errors import UnavailableError
from mulligan.domain.issue import IssueRef
from mulligan.interfaces.dashboard.access import (
    KEY_FILE,
    LINK_LIFETIME,
    OneTimeKey,
    is_ours,
    key_in,
)
from mulligan.interfaces.dashboard.app import LINK_TEXT, link_to
from world.dashboards import Dashboard, HttpAnswer, serve_dashboard

REF = IssueRef("octo/one", 1)
FORM = {"content_type": "application/x-www-form-urlencoded"}


@pytest.fixture
def dashboard(tmp_path: Path) -> Generator[Dashboard]:
    with serve_dashboard(tmp_path) as made:
        made.begin(REF, "Mend it")
        yield made


def test_without_the_key_there_is_a_form_and_nothing_else(dashboard: Dashboard) -> None:
    for path in ("/", "/issues/octo/one/1", "/issues/octo/one/1/attempts/1/prompt", "/nowhere"):
        said = dashboard.ask_without_key(path)
        assert (said.status, said.headers["location"]) == (303, "/login")
        assert b"Mend it" not in said.body
    for path in ("/api/issues", "/api/issues/octo/one/1", "/api/events"):
        assert dashboard.ask_without_key(path).status == 401
    assert dashboard.ask("/api/issues", authorization="Bearer guessed").status == 401
    assert dashboard.ask("/api/issues", authorization="", cookie="mulligan-1=x").status == 401


def test_whoever_types_the_key_in_is_let_in_until_they_sign_out(dashboard: Dashboard) -> None:
    wrong = dashboard.ask("/login", "POST", "key=guessed", authorization="", **FORM)
    assert (wrong.status, "set-cookie" in wrong.headers) == (403, False)
    right = dashboard.ask("/login", "POST", f"key={dashboard.key.secret}", authorization="", **FORM)
    cookie = right.headers["set-cookie"]
    assert (right.status, right.headers["location"]) == (303, "/")
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert dashboard.key.secret not in cookie
    kept = cookie.partition(";")[0]
    assert "Mend it" in dashboard.ask_without_key("/", cookie=kept).text
    out = dashboard.ask_without_key("/logout", "POST", cookie=kept)
    assert "Max-Age=0" in out.headers["set-cookie"]


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("origin", "http://evil.example"),
        ("origin", "null"),
        ("origin", "http://127.0.0.1:1"),
        ("sec_fetch_site", "cross-site"),
        ("sec_fetch_site", "same-site"),
    ],
)
def test_a_form_of_another_page_is_refused(dashboard: Dashboard, header: str, value: str) -> None:
    sent = {header: value, **FORM}
    assert dashboard.ask("/login", "POST", f"key={dashboard.key.secret}", **sent).status == 403
    assert dashboard.ask("/logout", "POST", **sent).status == 403
    used = dashboard.ask("/open", "POST", f"key={dashboard.link_key.secret}", **sent)
    assert (used.status, "set-cookie" in used.headers) == (403, False)
    assert dashboard.link_key.use(dashboard.link_key.secret)


def test_nothing_but_a_command_changes_anything(dashboard: Dashboard) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        for path in ("/", "/api/issues", "/issues/octo/one/1", "/metrics"):
            assert dashboard.ask(path, method).status == 405
    before = dashboard.stores.ledger.last_seq()
    for path in ("/", "/login", "/open?key=x", "/logout", "/issues/octo/one/1", "/api/events"):
        dashboard.ask(path)
    assert dashboard.stores.ledger.last_seq() == before


def test_a_name_that_leads_to_loopback_does_not_lead_here(dashboard: Dashboard) -> None:
    for host in ("evil.example", "evil.example:8787", "127.0.0.1.evil.example", "", "a b"):
        for path in ("/", "/healthz", "/metrics", "/static/style.css"):
            assert dashboard.ask(path, host=host).status == 421
    for host in ("localhost:8787", "127.0.0.1", "[::1]:8787", "10.0.0.7:8787", "mulligan.example"):
        assert dashboard.ask("/", host=host).status == 200


@pytest.mark.parametrize("host", ["[::1", "[", "::", "localhost.", "user@localhost@evil.example"])
def test_an_odd_host_is_not_ours(host: str) -> None:
    assert not is_ours(host, frozenset())


def test_every_answer_tells_browsers_to_run_and_to_leak_nothing(dashboard: Dashboard) -> None:
    for path in ("/", "/login", "/issues/octo/one/1", "/healthz", "/static/page.js", "/nowhere"):
        headers = dashboard.ask(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert "access-control-allow-origin" not in headers


def test_pages_hold_no_script_or_style_of_their_own(dashboard: Dashboard) -> None:
    for path in ("/", "/login", "/open?key=x", "/issues/octo/one/1"):
        page = dashboard.ask(path).text
        assert page.count("<script") == page.count('<script src="/static/')
        assert "style=" not in page
        assert " on" + "click" not in page


def test_only_its_own_files_are_served(dashboard: Dashboard) -> None:
    for name in ("..%2fapp.py", "%2e%2e/app.py", "../app.py", "app.py", ""):
        assert dashboard.ask(f"/static/{name}").status == 404


def test_the_key_is_for_its_user_alone_and_stays(tmp_path: Path) -> None:
    first = key_in(tmp_path)
    assert stat.S_IMODE((tmp_path / KEY_FILE).stat().st_mode) == 0o600
    assert key_in(tmp_path) == first
    (tmp_path / KEY_FILE).write_text("cut")
    assert key_in(tmp_path).secret != first.secret
    assert [each.name for each in tmp_path.iterdir()] == [KEY_FILE]


def test_a_key_that_cannot_be_kept_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match=r"access key could not be written"):
        key_in(tmp_path / "nowhere")


def opened(dashboard: Dashboard, key: str, **headers: str) -> HttpAnswer:
    """Press the button of the printed link's page."""
    return dashboard.ask("/open", "POST", f"key={key}", authorization="", **FORM, **headers)


def test_the_printed_link_signs_one_browser_in_once(dashboard: Dashboard) -> None:
    secret = dashboard.link_key.secret
    first = opened(dashboard, secret)
    cookie = first.headers["set-cookie"]
    assert (first.status, first.headers["location"]) == (303, "/")
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert secret not in cookie
    assert "Mend it" in dashboard.ask_without_key("/", cookie=cookie.partition(";")[0]).text
    again = opened(dashboard, secret)
    assert (again.status, "set-cookie" in again.headers) == (403, False)
    assert "This link does not work any more." in again.text
    assert secret not in again.text
    known = opened(dashboard, secret, cookie=cookie.partition(";")[0])
    assert (known.status, known.headers["location"]) == (303, "/")
    assert dashboard.ask("/").status == 200  # the access key goes on working


def test_previews_and_prefetches_do_not_use_the_link_up(dashboard: Dashboard) -> None:
    link = f"/open?key={dashboard.link_key.secret}"
    for method in ("GET", "HEAD"):
        for headers in ({}, {"sec_purpose": "prefetch;prerender"}, {"user_agent": "Slackbot 1.0"}):
            said = dashboard.ask_without_key(link, method, **headers)
            assert (said.status, "set-cookie" in said.headers) == (200, False)
            assert b"Mend it" not in said.body
    assert opened(dashboard, dashboard.link_key.secret).status == 303


def test_only_one_of_many_requests_at_once_uses_the_link(dashboard: Dashboard) -> None:
    with ThreadPoolExecutor(8) as threads:
        answers = threads.map(partial(opened, dashboard), [dashboard.link_key.secret] * 8)
        assert sorted(each.status for each in answers) == [303, *(403,) * 7]


def test_a_wrong_key_opens_nothing_and_leaves_the_link_as_it_is(dashboard: Dashboard) -> None:
    secret = dashboard.link_key.secret
    for wrong in ("", "guessed", secret[:-1], f"{secret}0", secret.upper() + "\u00e9", "%00"):
        said = opened(dashboard, wrong)
        assert (said.status, "set-cookie" in said.headers) == (403, False)
    assert dashboard.ask("/login", "POST", f"key={secret}", authorization="", **FORM).status == 403
    assert dashboard.ask("/api/issues", authorization=f"Bearer {secret}").status == 401
    assert opened(dashboard, secret).status == 303


def test_a_hostile_key_is_text(dashboard: Dashboard) -> None:
    page = dashboard.ask_without_key('/open?key="><script>x</script>'.replace("<", "%3C")).text
    assert "<script>x" not in page


def test_the_link_expires() -> None:
    now = 100.0
    key = OneTimeKey(clock=lambda: now)
    now += LINK_LIFETIME.total_seconds()
    assert not key.use(key.secret)
    now -= 1
    assert key.use(key.secret)
    assert key.secret not in repr(key)


def test_without_a_link_nothing_opens_one(tmp_path: Path) -> None:
    with serve_dashboard(tmp_path, has_link=False) as dashboard:
        for key in ("", "None", dashboard.key.secret):
            assert opened(dashboard, key).status == 403


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://127.0.0.1:8787/", "http://127.0.0.1:8787"),
        ("http://0.0.0.0:80/", "http://127.0.0.1:80"),
        ("http://[::]:80/", "http://[::1]:80"),
    ],
)
def test_the_link_leads_to_this_machine(url: str, local: str) -> None:
    key = OneTimeKey()
    assert link_to(url, key) == f"{local}/open?key={key.secret}"


def test_the_path_of_the_key_has_a_line_of_its_own() -> None:
    text = LINK_TEXT.format(link="http://127.0.0.1:8787/open?key=1", key_file="/s/dashboard.key")
    assert text.splitlines()[-1] == "/s/dashboard.key"
    assert max(map(len, text.splitlines())) <= 80
