"""Starts moto on a port of loopback until standard input ends."""
import os
import sys
import threading

from moto.server import main


def until_end():
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    threading.Thread(target=until_end, daemon=True).start()
    main(["-H", "127.0.0.1", "-p", sys.argv[1]])
