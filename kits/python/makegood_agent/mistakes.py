"""Tells a mistake of the program from a failure of what it calls, and finds its line."""

from __future__ import annotations

import os
import sysconfig
import traceback

KIND = "panic"
"""The kind of failure that a mistake is, as a panic is in Go."""

# What Python raises when a program is wrong, whatever it was given and whoever answers. Not ValueError: that is raised for what a remote
# service answered (no JSON, no number), too. Not OSError, RuntimeError or MemoryError: those are of the world.
_MISTAKES = (
    AssertionError, AttributeError, ImportError, IndexError, KeyError, NameError, NotImplementedError, RecursionError, SyntaxError, TypeError,
    ZeroDivisionError,
)
_KIT = os.path.dirname(os.path.abspath(__file__))
_LIBRARY = tuple({os.path.abspath(p) for p in (sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")) if p})


def mistaken(err: BaseException) -> bool:
    """Whether an exception that an action raised is a mistake in its program. One that is derived from Python's own (class NoSuchAccount(KeyError))
    was raised on purpose, and is none."""
    return isinstance(err, _MISTAKES) and type(err).__module__ == "builtins"


def place(err: BaseException) -> str:
    """Where an exception began, as " (at DIRECTORY/FILE:LINE)": the innermost call that is neither of Python's library nor of this kit.
    Empty: there is none, as where an action cannot be called with what it is given."""
    for frame in reversed(traceback.extract_tb(err.__traceback__)):
        file = os.path.abspath(frame.filename)
        if not frame.filename.startswith("<") and not _within(file, _KIT) and not _library(file):
            return f" (at {os.path.basename(os.path.dirname(file))}/{os.path.basename(file)}:{frame.lineno})"
    return ""


def _library(file: str) -> bool:
    # What is installed lies in a folder of the library, and is none of it.
    installed = f"{os.sep}site-packages{os.sep}" in file or f"{os.sep}dist-packages{os.sep}" in file
    return not installed and any(_within(file, directory) for directory in _LIBRARY)


def _within(file: str, directory: str) -> bool:
    return file.startswith(directory + os.sep)
