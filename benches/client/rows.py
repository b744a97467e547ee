"""Rows of figures of clients, beside their peers, as lines of Markdown."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

Rounds = Sequence[Mapping[str, Mapping[str, float]]]


@dataclass(frozen=True)
class Goal:
    """A peer that one of ours is compared with, and what is wanted of it."""

    peer: str
    ratio: float | None = None
    """The rate in times of the peer's, at least."""
    rate: float | None = None
    """Millions of records a second, at least."""

    def wanted(self) -> str:
        """Tell both in words."""
        parts = []
        if self.rate is not None:
            parts.append(f"≥ {self.rate} M/s")
        if self.ratio is not None:
            parts.append(f"≥ {self.ratio} ×")
        return ", ".join(parts)

    def is_met(self, rate: float, ratio: float) -> bool:
        """Tell whether figures are what is wanted."""
        return rate >= (self.rate or 0) and ratio >= (self.ratio or 0)


def table(
    title: str,
    programs: Mapping[str, Callable[..., object]],
    goals: Mapping[str, Goal],
    rounds: Rounds,
) -> list[str]:
    """Return the medians of all rounds; a ratio is taken round by round."""
    lines = [
        f"| {title} | M records/s | CPU µs a record | beside | wanted | met |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, program in programs.items():
        rates = [each[name]["records"] / each[name]["seconds"] / 1e6 for each in rounds]
        costs = [each[name]["cpu"] / each[name]["records"] * 1e6 for each in rounds]
        rate = statistics.median(rates)
        beside = wanted = met = ""
        if goal := goals.get(name):
            peers = [
                each[goal.peer]["records"] / each[goal.peer]["seconds"] / 1e6 for each in rounds
            ]
            ratio = statistics.median(o / p for o, p in zip(rates, peers, strict=True))
            beside = f"{ratio:.1f} × {goal.peer}"
            wanted = goal.wanted()
            if wanted:
                met = "yes" if goal.is_met(rate, ratio) else "**no**"
        what = (program.__doc__ or "").rstrip(".")
        lines.append(
            f"| {name}: {what} | {rate:.2f} | {statistics.median(costs):.2f} "
            f"| {beside} | {wanted} | {met} |"
        )
    return lines
