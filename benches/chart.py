"""The speed table as an SVG: how many times faster than aiokafka, a bar a case, a tick a target."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_WIDTH = 760
_LABEL = 210
_RIGHT = 70
_ROW = 30
_BAR = 11
_TOP = 64
_STYLE = """\
  text { font: 12px system-ui, sans-serif; fill: #24292f }
  .title { font-size: 15px; font-weight: 600 }
  .note { fill: #57606a }
  .small { fill: #1f6feb } .large { fill: #8ab4f8 }
  .target { stroke: #cf222e; stroke-width: 2 }
  .grid { stroke: #d0d7de }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .note { fill: #9da7b3 } .grid { stroke: #30363d }
  }"""


@dataclass(frozen=True)
class Bar:
    """One ratio, and what was wanted."""

    ratio: float
    target: float | None
    size: str
    """`small` or `large`: the data's."""


def _bar(bar: Bar, y: float, scale: float) -> list[str]:
    width = bar.ratio * scale
    lines = [
        f'<rect class="{bar.size}" x="{_LABEL}" y="{y:g}" width="{width:.1f}" height="{_BAR}"/>',
        f'<text x="{_LABEL + width + 6:.1f}" y="{y + 10:g}">{bar.ratio:.1f}</text>',
    ]
    if bar.target is not None:
        x = _LABEL + bar.target * scale
        end = y + _BAR
        lines.append(f'<line class="target" x1="{x:.1f}" y1="{y:g}" x2="{x:.1f}" y2="{end:g}"/>')
    return lines


def _key(size: str, x: int, text: str) -> tuple[str, str]:
    return (
        f'<rect class="{size}" x="{x}" y="38" width="11" height="11"/>',
        f'<text x="{x + 16}" y="48">{text}</text>',
    )


def draw(rows: Sequence[tuple[str, Sequence[Bar]]], note: str) -> str:
    """Return the chart of some cases, each with a bar for each size."""
    height = _TOP + _ROW * len(rows) + 28
    bars = [bar for _, row in rows for bar in row]
    largest = max(max(bar.ratio, bar.target or 0) for bar in bars)
    scale = (_WIDTH - _LABEL - _RIGHT) / largest
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">',
        "<title>Ottla's speed as a multiple of aiokafka's</title>",
        f"<style>\n{_STYLE}\n</style>",
        '<text class="title" x="10" y="24">Times as fast as aiokafka, one thread</text>',
        *_key("small", 10, "1 MiB"),
        *_key("large", 80, "16 MiB"),
        '<line class="target" x1="160" y1="38" x2="160" y2="49"/>',
        '<text x="168" y="48">wanted</text>',
    ]
    step = 10 if largest <= 80 else 20
    for value in range(0, int(largest) + 1, step):
        x = _LABEL + value * scale
        lines.append(
            f'<line class="grid" x1="{x:.1f}" y1="{_TOP - 6}" x2="{x:.1f}" y2="{height - 24}"/>'
        )
    for index, (title, row) in enumerate(rows):
        y = _TOP + index * _ROW
        lines.append(f'<text x="10" y="{y + 16}">{escape(title)}</text>')
        for place, bar in enumerate(row):
            lines += _bar(bar, y + place * (_BAR + 2), scale)
    lines.append(f'<text class="note" x="10" y="{height - 8}">{escape(note)}</text>')
    return "\n".join([*lines, "</svg>", ""])
