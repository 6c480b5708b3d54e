"""An agent: a name, and what it can be asked for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Callable, Dict, Optional, TypeVar

from .attempt import Attempt
from .errors import Final

Do = Callable[[Any, Attempt], Any]
UndoDo = Callable[[Any, Any, Attempt], None]
Parse = Callable[[Any], Any]
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class _Route:
    undoes: bool
    handle: Callable[..., Any]
    parse: Optional[Parse]
    references: bool


class Agent:
    """Makegood hands it tasks. The name is that of the workflow file, and so are those of its actions."""

    def __init__(self, name: str) -> None:
        if not re.fullmatch("[A-Za-z][A-Za-z0-9_-]{0,62}", name):
            raise ValueError(f"{name!r} cannot be an agent's name: want [A-Za-z][A-Za-z0-9_-]{{0,62}}")
        self.name = name
        self._routes: Dict[str, _Route] = {}

    def do(self, name: str, *, parse: Optional[Parse] = None, references: bool = False) -> Callable[[F], F]:
        """Declares an action: a function of the input and the attempt, which returns the output, a JSON value.

        parse makes of the input, as JSON gives it, what the function takes; what it raises is final, and had no effect.
        An undo may name such an action too: attempt.task.undo tells it what it undoes. An output that is a large payload is a
        reference there: only for an action that is declared as an undo it is read.

        An input that is a large payload as a whole is read into memory, up to 16 MB of JSON; with references the function gets the
        reference, for attempt.open_payload. An output above 256 KB becomes a payload by itself.
        """
        return self._declare(name, undoes=False, parse=parse, references=references)

    def undo(self, name: str, *, parse: Optional[Parse] = None, references: bool = False) -> Callable[[F], F]:
        """Declares an action that compensates: a function of the input, the step's output, and the attempt.

        The output is None when the outcome of the step is unknown: it may or may not have happened, and the undo sees to it
        that it has not and will not, under attempt.task.undo.forward_key. That there is nothing to undo is success.

        Input and output that are a large payload as a whole are read as in do. But an output that is no JSON, or above 16 MB, is no
        reason not to undo: it comes as its reference, a dict with the one member $payload.
        """
        return self._declare(name, undoes=True, parse=parse, references=references)

    def actions(self) -> "list[str]":
        return sorted(self._routes)

    def _declare(self, name: str, *, undoes: bool, parse: Optional[Parse], references: bool) -> Callable[[F], F]:
        if not re.fullmatch("[A-Za-z][A-Za-z0-9_-]{0,62}", name):
            raise ValueError(f"agent {self.name}: {name!r} cannot be the name of an action")
        if name in self._routes:
            raise ValueError(f"agent {self.name}: action {name!r} is there twice")

        def declare(function: F) -> F:
            self._routes[name] = _Route(undoes, function, parse, references)
            return function

        return declare

    def handle(self, attempt: Attempt) -> Any:
        """Does one attempt, and returns its output. What it raises says how it failed."""
        task = attempt.task
        route = self._routes.get(task.action)
        if route is None:
            raise Final(f"agent {self.name} has no action {task.action!r}, only {', '.join(self.actions())}", not_applied=True)
        if route.undoes and task.undo is None:
            raise Final(f"action {task.action!r} of agent {self.name} undoes; it cannot be a step of its own", not_applied=True)
        given = task.input if route.references else attempt.payloads.value("input", task.input)
        if route.parse is not None:
            try:
                given = route.parse(given)
            except Exception as err:
                raise Final(f"input: {err}", not_applied=True) from err
        if route.undoes:
            assert task.undo is not None
            done = task.undo.output if task.undo.outcome == "done" else None
            if not route.references:
                done = attempt.payloads.done(done)
            route.handle(given, done, attempt)
            return None
        return route.handle(given, attempt)
