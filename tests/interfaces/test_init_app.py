"""`mulligan init --app` leads a browser to GitHub and back, and keeps the key that comes of it."""

import html
import re
import signal
import stat
from collections.abc import Generator
from pathlib import Path

import pytest
import requests

from mulligan.config.load import load_operator
from mulligan.github.app import AppCredentials
from mulligan.interfaces.bootstrap.clock_and_backoff import SystemClock
from world.fork_server import ForkedProcess
from world.place import MulliganInstallation, mulligan_installation


@pytest.fixture
def here(tmp_path: Path) -> Generator[MulliganInstallation]:
    with mulligan_installation(tmp_path, {"notes.txt": "one\n"}) as made:
        yield made


def start(here: MulliganInstallation, *arguments: str) -> tuple[ForkedProcess, str]:
    """Begin, and give the address that is to be opened."""
    process = here.start("init", "--app", *arguments)
    assert process.stdout
    found = re.search(r"http://127\.0\.0\.1:\d+/", process.stdout.readline())
    assert found
    return process, found[0]


def press(address: str) -> str:
    """Press the button as a person does; give where GitHub sends the browser back to."""
    page = requests.get(address, timeout=120).text
    found = re.findall(r'(?:action|value)="([^"]*)"', page)
    action, manifest = (html.unescape(each) for each in found)
    form = {"manifest": manifest}
    sent = requests.post(action, data=form, timeout=120, allow_redirects=False)
    assert sent.status_code == 302
    return sent.headers["Location"]


def test_an_app_is_made_and_its_key_is_this_users_alone(here: MulliganInstallation) -> None:
    process, address = start(here, "--organization", "acme")
    back = press(address)
    assert requests.get(f"{back}x", timeout=120).status_code == 400
    assert requests.get(back, timeout=120).ok
    said, wrong = process.communicate(timeout=120)
    assert (process.returncode, wrong) == (0, "")
    key = here.directory / "mulligan-app.pem"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert "PRIVATE KEY" not in said
    assert f"{here.url}/apps/mulligan-acme/installations/new" in said
    asked = [each.path for each in here.world.requests]
    assert "/organizations/acme/settings/apps/new" in asked
    proposed = said[said.index("github:\n  api_url") : said.index("Then install it")]
    config = here.directory / "with-app.yml"
    config.write_text(f"{proposed}repositories: [{{name: o/r}}]\nagent: {{kind: claude}}\n")
    github = load_operator(config, {}).github
    assert github.app
    credentials = AppCredentials(github.api_url, github.app, SystemClock())
    assert credentials.login() == "mulligan-acme[bot]"
    credentials.close()


def test_a_key_that_is_there_is_never_written_over(here: MulliganInstallation) -> None:
    key = here.directory / "mulligan-app.pem"
    key.write_text("mine")
    done = here.run("init", "--app")
    assert (done.returncode, "already exists. Move it" in done.stderr) == (2, True)
    assert key.read_text() == "mine"


def test_an_interrupt_leaves_nothing(here: MulliganInstallation) -> None:
    process, _ = start(here, "--key-file", "keys/own.pem")
    process.send_signal(signal.SIGINT)
    _, wrong = process.communicate(timeout=120)
    assert process.returncode == 130
    assert wrong.startswith("mulligan: Interrupted, so no key was written.")
    assert wrong.count("\n") == 1
    assert not (here.directory / "keys" / "own.pem").exists()


def test_a_code_that_github_does_not_know_is_one_sentence(here: MulliganInstallation) -> None:
    process, address = start(here)
    back = press(address)
    here.world.apps.manifests.clear()
    assert requests.get(back, timeout=120).ok
    _, wrong = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "GitHub does not know the code from the browser" in wrong
    assert not (here.directory / "mulligan-app.pem").exists()
