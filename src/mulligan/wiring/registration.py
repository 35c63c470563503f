"""Register a GitHub App: what the browser is shown, and what its answer is exchanged for."""

from dataclasses import dataclass
from pathlib import Path

from mulligan.github.client import Client
from mulligan.github.manifest import MadeApp, convert, manifest, page, web_url
from mulligan.github.sessions import Transport
from mulligan.wiring.bench import HASTE

__all__ = ["MadeApp", "Registration"]


@dataclass(frozen=True, slots=True)
class Registration:
    """An App that is to be: where, for whom, and under which name."""

    api_url: str
    name: str
    organization: str | None = None
    ca_file: Path | None = None

    def page(self, state: str, back: str) -> str:
        """Write the page for the browser; GitHub sends it `back`, with a code and the state."""
        web = web_url(self.api_url)
        return page(web, self.organization, state, manifest(self.name, web, back))

    def exchange(self, code: str) -> MadeApp:
        """Have the App for the code; WorldError where GitHub does not give it."""
        transport = Transport(ca_file=self.ca_file)
        client = Client(self.api_url, lambda _: None, HASTE, transport)
        try:
            return convert(client, code)
        finally:
            client.close()
