"""Reads a template as JSON on standard input, and writes what AWS's SAM transform makes of it."""
import json
import os
import sys

os.environ.setdefault("AWS_DEFAULT_REGION", "eu-central-1")

from samtranslator.translator.transform import transform


class NoPolicies:
    """Managed policies by name: the template uses none."""

    def load(self):
        return {}


if __name__ == "__main__":
    json.dump(transform(json.load(sys.stdin), {}, NoPolicies()), sys.stdout)
