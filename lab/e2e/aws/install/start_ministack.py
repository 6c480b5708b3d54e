"""Starts MiniStack until standard input ends. Address and port come from the environment."""
import os
import sys
import threading

from ministack.app import main


def until_end():
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    threading.Thread(target=until_end, daemon=True).start()
    sys.argv = ["ministack"]
    sys.exit(main())
