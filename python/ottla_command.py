"""Entry point of the program `ottla`.

It stands outside the package so that Ctrl-C while that is imported ends in one line, as it does
later.
"""

from __future__ import annotations

import sys

INTERRUPTED = 130


def main() -> None:
    """Runs the program."""
    try:
        from ottla.cli import main as main_of_package

        main_of_package()
    except KeyboardInterrupt:
        sys.stderr.write("ottla: interrupted\n")
        sys.exit(INTERRUPTED)
