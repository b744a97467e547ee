"""`make bench-failures`: what clients do in twenty failures, and the page of it.

python -m benches.failures                    # measures all that run here, writes the page
python -m benches.failures --client Java answer-lost
python -m benches.failures --page             # writes the page of the last results
"""

import argparse

from benches.failures import page, results
from benches.failures.client import CLIENTS
from benches.failures.scenarios import SCENARIOS


def main() -> None:
    """Measure, and write results and page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=", ".join(SCENARIOS))
    parser.add_argument("--client", action="append", choices=CLIENTS, help="by default all")
    parser.add_argument("--page", action="store_true", help="only write the page")
    given = parser.parse_args()
    unknown = set(given.scenarios) - SCENARIOS.keys()
    if unknown:
        parser.error(f"no such scenario: {', '.join(sorted(unknown))}")
    found = results.load()
    if not given.page:
        names = given.scenarios or list(SCENARIOS)
        results.measure(found, given.client or CLIENTS, names, lambda line: print(line, flush=True))
        results.RESULTS.write_text(found.text(), encoding="utf-8")
    page.PAGE.parent.mkdir(exist_ok=True)
    page.PAGE.write_text(page.page(found), encoding="utf-8")


if __name__ == "__main__":
    main()
