"""Failures that strike a consumer."""

from __future__ import annotations

from benches.failures.client import OK
from benches.failures.proxy import FETCH
from benches.failures.scenarios.stage import (
    GROUP,
    TOPIC,
    Observed,
    Scenario,
    Stage,
    Wish,
    is_error,
    read,
)

HEARS = Wish("the program gets an error", lambda seen: is_error(seen.told[0]))


def _values(prefix: str, numbers: range) -> list[str]:
    return [f"{prefix}{number}" for number in numbers]


def _offset_out_of_range(stage: Stage) -> Observed:
    stage.topic()
    stage.fill(_values("a", range(10)))
    stage.delete_records(5)
    client = stage.consumer(reset="none")
    client.ask("assign", TOPIC, "2")
    found, error, answer = read(client, 5)
    return Observed(read=found, told=[error], time=answer.time)


def _log_truncated(stage: Stage) -> Observed:
    stage.topic()
    stage.fill(_values("a", range(10)))
    client = stage.consumer(reset="none")
    client.ask("assign", TOPIC, "0")
    first, _, _ = read(client, 10)
    stage.replace_records(6, _values("b", range(6, 12)))
    found, error, answer = read(client, 6)
    return Observed(read=[*first, *found], told=[error], time=answer.time)


def _topic_made_again(stage: Stage) -> Observed:
    stage.topic()
    stage.fill(_values("a", range(5)))
    client = stage.consumer(reset="earliest")
    client.ask("assign", TOPIC, "0")
    first, _, _ = read(client, 5)
    stage.make_again(_values("b", range(8)))
    found, error, answer = read(client, 8)
    return Observed(read=[*first, *found], told=[error], time=answer.time)


def _corrupt_batch(stage: Stage) -> Observed:
    stage.topic()
    stage.fill(_values("value-", range(5)))

    def damage(frame: bytes) -> bytes | None:
        return frame.replace(b"value-2", b"value-Z") if b"value-2" in frame else None

    stage.proxy.damage(FETCH, damage)
    client = stage.consumer()
    client.ask("assign", TOPIC, "0")
    found, error, answer = read(client, 5)
    later, again, _ = read(client, 5 - len(found), tries=4)
    return Observed(
        read=[*found, *later], told=[error], calls={"poll again": again}, time=answer.time
    )


def _member_expired(stage: Stage) -> Observed:
    stage.topic()
    stage.fill(_values("a", range(5)))
    client = stage.consumer(group=GROUP)
    client.ask("subscribe", TOPIC)
    first, _, _ = read(client, 5, tries=40)
    stage.broker.expire(group=GROUP)
    answer = client.ask("commit_positions")
    found, error, _ = read(client, 5, tries=40)
    return Observed(
        read=[*first, *found],
        told=[answer.error],
        calls={"poll again": error},
        time=answer.time,
    )


READING = (
    Scenario(
        "offset-out-of-range",
        "Offset out of range, without a reset",
        "A consumer with `auto.offset.reset=none` begins at offset 2 of a log that begins at 5.",
        (HEARS, Wish("no record is skipped", lambda seen: not seen.read)),
        _offset_out_of_range,
    ),
    Scenario(
        "log-truncated",
        "Log truncated behind the reader",
        "A consumer has read ten records. A leader without the last four takes over, and six "
        "others are written from offset 6 on, so that its position is within the log (KIP-320).",
        (
            Wish(
                "the program gets an error, or all of the six",
                lambda seen: (
                    is_error(seen.told[0])
                    or seen.read == [*_values("a", range(10)), *_values("b", range(6, 12))]
                ),
            ),
            Wish(
                "none of the six is skipped in silence",
                lambda seen: is_error(seen.told[0]) or "b6" in seen.read,
            ),
        ),
        _log_truncated,
    ),
    Scenario(
        "topic-made-again",
        "Topic deleted and created again",
        "A consumer has read five records. The topic is deleted and created again under its name, "
        "and has eight records.",
        (
            Wish(
                "the program gets an error, or all of the eight",
                lambda seen: (
                    is_error(seen.told[0])
                    or seen.read == [*_values("a", range(5)), *_values("b", range(8))]
                ),
            ),
        ),
        _topic_made_again,
    ),
    Scenario(
        "corrupt-batch",
        "A damaged batch in a fetch",
        "The third of five batches has a wrong checksum each time it is fetched.",
        (
            HEARS,
            Wish("what is before it is read", lambda seen: seen.read[:2] == ["value-0", "value-1"]),
            Wish("no damaged record is handed out", lambda seen: "value-Z" not in seen.read),
            Wish("nothing behind it is read as if it were next", lambda seen: len(seen.read) <= 2),
        ),
        _corrupt_batch,
    ),
    Scenario(
        "member-expired",
        "Member expired before its commit",
        "A consumer of a group reads five records; its session ends before it commits.",
        (
            Wish("the commit fails", lambda seen: is_error(seen.told[0])),
            Wish(
                "the consumer joins again, and reads them again",
                lambda seen: (
                    seen.calls["poll again"] == OK and seen.read == [*_values("a", range(5))] * 2
                ),
            ),
        ),
        _member_expired,
    ),
)
