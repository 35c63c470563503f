"""Read which labels an issue template puts on, be it Markdown or a form. Pure."""

import re

import yaml
from pydantic import BaseModel

FRONT_MATTER = re.compile(rb"\A---\r?\n(.*?)^---", re.DOTALL | re.MULTILINE)


class Template(BaseModel):
    """What matters of a template; labels are a list, or a text with commas."""

    labels: str | tuple[str, ...] = ()


def labels_put_on(template: bytes) -> tuple[str, ...]:
    """List the labels; none where the template cannot be read."""
    front = FRONT_MATTER.match(template)
    try:
        content: object = yaml.safe_load(front[1] if front else template)
        labels = Template.model_validate(content).labels
    except (yaml.YAMLError, ValueError):
        return ()
    return tuple(each.strip() for each in labels.split(",")) if isinstance(labels, str) else labels
