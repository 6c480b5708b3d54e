"""Puts secrets into the input of a task just before it is done, and takes them out of what is said of it."""

from __future__ import annotations

import copy
import json
import os
from typing import Any, Callable, Dict, Tuple

from .errors import Final
from .task import Task

Source = Callable[[str], str]
"""Gives the value of a secret by its name. KeyError: there is none."""


def from_environment(name: str) -> str:
    """MAKEGOOD_SECRET_NAME of the environment, the name in capitals."""
    return os.environ["MAKEGOOD_SECRET_" + name.upper().replace("-", "_")]


def fill(task: Task, source: Source) -> Tuple[Any, "Hider"]:
    """Returns the input with its secrets, and what hides them again."""
    values: Dict[str, str] = {}
    filled = copy.deepcopy(task.input)
    added: Dict[str, int] = {}
    for secret in task.secrets:
        name, path, at = str(secret["name"]), str(secret["path"]), int(secret.get("at", 0))
        try:
            value = source(name)
        except KeyError:
            raise Final(f"there is no secret {name} here", not_applied=True) from None
        values[name] = value
        at += added.get(path, 0)
        added[path] = added.get(path, 0) + len(value)
        filled = _put(filled, path, lambda text: text[:at] + value + text[at:])
    return filled, Hider(values)


def _put(root: Any, path: str, change: Callable[[str], str]) -> Any:
    """Changes the text at a JSON pointer (RFC 6901)."""
    if path == "":
        return change(root)
    parts = [p.replace("~1", "/").replace("~0", "~") for p in path.split("/")[1:]]
    at = root
    for part in parts[:-1]:
        at = at[int(part)] if isinstance(at, list) else at[part]
    last: Any = int(parts[-1]) if isinstance(at, list) else parts[-1]
    at[last] = change(at[last])
    return root


class Hider:
    """Takes values out of what an agent says; their names stand in their places."""

    def __init__(self, values: Dict[str, str]) -> None:
        # The longest first: one may be part of another.
        self.values = sorted(((v, f"[secret {name}]") for name, v in values.items() if v), key=lambda v: len(v[0]), reverse=True)

    def text(self, text: str) -> str:
        for value, instead in self.values:
            text = text.replace(value, instead)
        return text

    def output(self, value: Any) -> Any:
        if not self.values:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(str(k)): self.output(v) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.output(v) for v in value]
        shown = json.dumps(value)
        return next((instead for v, instead in self.values if v == shown), value)
