"""`dashboard` of `mulligan.yml`: where health, metrics and the dashboard are served."""

import re
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, field_validator

from mulligan.config.settings import Settings

NAME = r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?"
ADDRESS = re.compile(rf"(?P<host>{NAME}|\[[0-9A-Fa-f:.]+\]):(?P<port>[0-9]{{1,5}})")
OFF = "off"
HIGHEST_PORT = 65535


def _off(value: object) -> object:
    # YAML 1.1 reads a bare `off` as false.
    return OFF if value is False else value


class Dashboard(Settings):
    """Health, metrics and the dashboard of `mulligan run`; may be written as `listen` alone."""

    listen: Annotated[str, BeforeValidator(_off, json_schema_input_type=str | Literal[False])] = (
        Field(default="127.0.0.1:8787")
    )
    """HOST:PORT, or off; the port 0 is any free one."""
    hosts: tuple[str, ...] = ()
    """Names by which browsers reach it, such as a proxy's; localhost and addresses always do."""

    @field_validator("listen")
    @classmethod
    def _an_address(cls, listen: str) -> str:
        found = ADDRESS.fullmatch(listen)
        if listen != OFF and (found is None or int(found["port"]) > HIGHEST_PORT):
            message = f"{listen!r} is no address; write HOST:PORT, as 127.0.0.1:8787, or off"
            raise ValueError(message)
        return listen

    @field_validator("hosts")
    @classmethod
    def _names(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        for host in hosts:
            if not re.fullmatch(NAME, host):
                message = f"{host!r} is not the name of a host; write it without https:// and port"
                raise ValueError(message)
        return hosts

    @property
    def address(self) -> tuple[str, int] | None:
        """Give host and port; None where it is off."""
        found = ADDRESS.fullmatch(self.listen)
        return (found["host"].strip("[]"), int(found["port"])) if found else None


AddressOrMore = str | Literal[False] | Dashboard


def address_alone(value: object) -> object:
    """Take an address, or off, for all of the settings."""
    return {"listen": value} if value is False or isinstance(value, str) else value
