"""Entry point of the program `ottla`.

It stands outside the package so that Ctrl-C while that is imported ends in one line, as it does
later.
"""

from __future__ import annotations

import gc
import sys

INTERRUPTED = 130


def main() -> None:
    """Runs the program."""
    # What a program loads and collects is no garbage: to look for some as often as Python does by
    # itself takes a thirtieth of a start, and of an audit.
    gc.set_threshold(50_000)
    try:
        from ottla.cli import main as main_of_package

        main_of_package()
    except KeyboardInterrupt:
        sys.stderr.write("ottla: interrupted\n")
        sys.exit(INTERRUPTED)
