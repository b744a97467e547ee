"""Audit a log directory from Python: the summary, the findings as rows, and an exception.

python examples/audit_directory.py [DIRECTORY]
"""

import sys
from pathlib import Path

import ottla


def main() -> None:
    """Audit the directory named on the command line, or the demo."""
    directory = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "data"
    result = ottla.audit(directory)

    summary = result.summary
    print(f"{summary.partitions} partitions, {summary.records} records, {summary.findings}")
    for finding in result.findings:
        if finding["severity"] != "info":
            print(f"{finding['severity']} {finding['name']} in {finding['file']}")
            print(f"    offsets {finding['first_offset']} to {finding['last_offset']}")

    # In a scheduled job: an exception with the findings of at least this severity.
    try:
        ottla.audit(directory, fail_on="warning").raise_for_findings()
    except ottla.FindingsError as error:
        print(f"would raise: {error}")


if __name__ == "__main__":
    main()
