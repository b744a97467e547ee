"""Records of coordinators' topics, decoded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.audit.result.tables import jsonable
from ottla.cli.record_text import JsonText, time_text
from ottla.logs.names import INTERNAL_TOPICS
from ottla.records import decode_record
from ottla.text import json_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ottla.cli.reading.lines import Lines
    from ottla.cli.reading.sources import Source
    from ottla.cli.record_text import ReadRecord

__all__ = ["INTERNAL_TOPICS", "decoded_lines"]


def decoded_lines(form: str) -> Lines:
    """Returns what writes records of internal topics, as text or JSON lines."""

    def lines(source: Source, records: Iterable[ReadRecord]) -> Iterator[bytes]:
        for r in records:
            decoded = decode_record(source.topic or "", _bytes(r.key), _bytes(r.value)) or {}
            if "fault" in decoded:
                decoded |= {"key": r.key, "value": r.value}
            if form == "jsonl":
                place = {"topic": source.topic, "partition": source.partition}
                row = {**place, "offset": r.offset, "timestamp": r.timestamp, **decoded}
                yield json_text(jsonable(row)).encode() + b"\n"
            else:
                yield _line(r, decoded).encode() + b"\n"

    return lines


def _bytes(value: bytes | JsonText | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


def _line(record: ReadRecord, decoded: Mapping[str, Any]) -> str:
    key, value = (json_text(jsonable(decoded[name])) for name in ("key", "value"))
    what = decoded.get("type") or f"({decoded['fault']})"
    return f"{record.offset:>10} {time_text(record.timestamp):<24} {what} {key} {value}"
