"""What a broker counts, and how it is told.

`Meters` has what is counted as it happens. Everything else is read where it is, when somebody asks:
`broker/measured.py` makes a `Family` of each. `exposition` writes families in the text format of
Prometheus, version 0.0.4. Names are those that the JMX exporter makes of Kafka's MBeans, in small
letters: dashboards made for Kafka find them. What Kafka has no meter for begins with ``ottla_``.

A family has a bounded number of samples (`MAX_SAMPLES`), whatever clients are called and however
many topics there are; how many were left out is a family of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ottla.broker.api import Api

__all__ = ["COUNTER", "GAUGE", "MAX_SAMPLES", "Family", "Meters", "Sample", "exposition"]

COUNTER: Final = "counter"
GAUGE: Final = "gauge"

MAX_SAMPLES: Final = 2_000
"""Of a family: some 200 KiB and 5 ms of the broker's thread, each time it is asked."""

NO_ERROR: Final = 0
_NO_ERRORS = (NO_ERROR,)


class Sample(NamedTuple):
    """A number, and what it is of.

    Attributes:
        labels: names and values, in their order.
        value: of the moment.
    """

    labels: tuple[tuple[str, str], ...]
    value: float


class Family(NamedTuple):
    """Numbers of one name.

    Attributes:
        name: as Prometheus has it.
        kind: `COUNTER` or `GAUGE`.
        help: what it counts, in a sentence.
        samples: the numbers.
    """

    name: str
    kind: str
    help: str
    samples: Sequence[Sample]


class Meters:
    """Requests by API and version, and their errors: no more samples than the protocol has."""

    def __init__(self) -> None:
        self._requests: dict[tuple[str, int], int] = {}
        self._errors: dict[tuple[str, int], int] = {}

    def count_request(self, api: Api, version: int, errors: Sequence[int]) -> None:
        """Counts a request that is done with."""
        # Each Produce and Fetch comes by: two lookups, no more.
        key = (api.name, version)
        self._requests[key] = self._requests.get(key, 0) + 1
        for error in errors or _NO_ERRORS:
            of_error = (api.name, error)
            self._errors[of_error] = self._errors.get(of_error, 0) + 1

    def requests(self) -> dict[tuple[str, int], int]:
        """Returns how many there were, by the name of the API's files and version."""
        return self._requests

    def errors(self) -> dict[tuple[str, int], int]:
        """Returns how many answers had an error, by the name of the API's files and the code."""
        return self._errors


def exposition(families: Iterable[Family], max_samples: int = MAX_SAMPLES) -> str:
    r"""Returns families in the text format of Prometheus; each is a line of help, type and samples.

    Args:
        families: in the order in which they are written.
        max_samples: the most of one family.

    >>> up = Family("up", GAUGE, "Whether it is.", [Sample((("who", 'a"b'),), 1)])
    >>> print(exposition([up]), end="")
    # HELP up Whether it is.
    # TYPE up gauge
    up{who="a\"b"} 1
    """
    lines: list[str] = []
    left_out: list[Sample] = []
    for family in families:
        _write(family, lines, max_samples)
        more = len(family.samples) - max_samples
        if more > 0:
            left_out.append(Sample((("name", family.name),), more))
    if left_out:
        text = "Samples that were left out, by the name of their family."
        _write(Family("ottla_samples_left_out", GAUGE, text, left_out), lines, max_samples)
    return "\n".join([*lines, ""])


def _write(family: Family, lines: list[str], max_samples: int) -> None:
    lines += [f"# HELP {family.name} {family.help}", f"# TYPE {family.name} {family.kind}"]
    for sample in family.samples[:max_samples]:
        labels = ",".join(f'{name}="{_escaped(value)}"' for name, value in sample.labels)
        name = f"{family.name}{{{labels}}}" if labels else family.name
        lines.append(f"{name} {sample.value:.17g}")


def _escaped(value: str) -> str:
    if not value.isprintable():
        # Clients choose their groups' names: no terminal shall obey one. Few have such a name.
        from ottla.text import visible  # noqa: PLC0415

        value = visible(value)
    return value.replace("\\", "\\\\").replace('"', '\\"')
