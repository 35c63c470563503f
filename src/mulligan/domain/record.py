"""The base of everything that is kept: frozen, and readable by later versions. Pure."""

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """A frozen fact that is stored as JSON; fields of a later version are passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)
