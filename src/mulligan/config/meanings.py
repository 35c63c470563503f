"""What is written about each setting in the code, for the pages and schemas made from it. Pure."""

import ast
import inspect
from functools import cache
from itertools import pairwise

from pydantic import BaseModel
from pydantic.fields import FieldInfo


@cache
def meanings(model: type[BaseModel]) -> dict[str, str]:
    """Read the string under each field; pydantic would read them at every start."""
    (found,) = ast.parse(inspect.getsource(model)).body
    statements = found.body if isinstance(found, ast.ClassDef) else []
    return {
        field.target.id: text.value.value
        for field, text in pairwise(statements)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }


def model_in(field: FieldInfo) -> type[BaseModel] | None:
    """Find the settings inside a field, be it one or a tuple of them."""
    inside: tuple[object, ...] = getattr(field.annotation, "__args__", ())
    for candidate in (field.annotation, *inside):
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return candidate
    return None
