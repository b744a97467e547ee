"""`make bench-client`: prints the figures; `--page` writes `docs/client/speed.md` with them."""

import argparse

from benches.client import consuming, producing
from benches.machine import demand_release, machine
from benches.worker import ROOT

PAGE = ROOT / "docs" / "client" / "speed.md"
_HEAD = """\
# Speed of the client

`make bench-client`: each client in a process of its own, each in turn in every round, with the same
broker (`ottla.testing.Broker(process=True)`, a new one for each producer). Broker and client share
two cores, so where a client asks little of the CPU, its broker sets the rate. Ratios of rates are
taken round by round; the tables have medians. CPU is the client's own.
"""


def page() -> str:
    """Measure, and return the page."""
    here = machine()
    return "\n".join(
        [
            _HEAD,
            f"Measured on {here['cpu']}, Python {here['python']}, revision {here['revision']}.",
            "",
            "## Writing",
            "",
            *producing.lines(producing.RECORDS, producing.PARTITIONS, producing.ROUNDS),
            "",
            "## Reading",
            "",
            *consuming.lines(consuming.RECORDS, consuming.PARTITIONS, consuming.ROUNDS),
            "",
        ]
    )


def main() -> None:
    """Measure and print, or write."""
    parser = argparse.ArgumentParser(description="The client beside its peers.")
    parser.add_argument("--page", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    given = parser.parse_args()
    demand_release()
    text = page()
    print(text)
    if given.page:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
