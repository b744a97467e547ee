"""Failures that strike a producer outside of transactions."""

from __future__ import annotations

from benches.failures.client import AT_ONCE, OK, Answer, Client
from benches.failures.proxy import PRODUCE
from benches.failures.scenarios.stage import (
    TOPIC,
    Observed,
    Scenario,
    Stage,
    Wish,
    has_no_key,
    is_error,
    told_of,
    word,
    words,
)

CULPRIT = 2
INNOCENT = ["0", "1", "3", "4"]
ALL = ["0", "1", "2", "3", "4"]

GOES_ON = Wish("the producer goes on", lambda seen: seen.calls["send again"] == OK)
IN_TIME_WISH = Wish("all is told within the time-out", lambda seen: seen.is_told_in_time)
STORED_ONCE = Wish(
    "each record is in the log, once and in order", lambda seen: seen.stored == [*ALL, "5"]
)
ALL_OK = Wish("every record is told as sent", lambda seen: seen.told == [OK] * 5)


def _after(stage: Stage, client: Client, answer: Answer, *, topic: str = TOPIC) -> Observed:
    """Return what came of five records, and of a sixth."""
    again = client.ask("send", word("5", topic=topic))
    return Observed(
        told=told_of(answer),
        stored=stage.values(topic),
        calls={"send again": told_of(again)[0]},
        time=answer.time,
    )


def _one_invalid(stage: Stage, *, is_idempotent: bool) -> Observed:
    stage.topic(cleanup_policy="compact")
    client = stage.producer(idempotent=str(is_idempotent).lower())
    records = words(*range(5))
    records[CULPRIT] = word(str(CULPRIT), key="-")
    answer = client.ask("send", *records)
    seen = _after(stage, client, answer)
    seen.says_why = has_no_key(answer.words)
    return seen


CULPRIT_ALONE = (
    Wish(
        "the innocent records are stored",
        lambda seen: seen.stored == [*INNOCENT, "5"],
    ),
    Wish(
        "the culprit alone is told as failed",
        lambda seen: [is_error(each) for each in seen.told] == [i == CULPRIT for i in range(5)],
    ),
    Wish("the broker's reason is told", lambda seen: seen.says_why),
    GOES_ON,
)


def _record_too_large(stage: Stage) -> Observed:
    stage.topic(max_message_bytes=4000)
    client = stage.producer()
    records = [word(str(index), size=6000 if index == CULPRIT else 1000) for index in range(5)]
    return _after(stage, client, client.ask("send", *records))


def _too_few_replicas(stage: Stage) -> Observed:
    stage.topic()
    client = stage.producer()
    stage.broker.fail("Produce", error="NOT_ENOUGH_REPLICAS", times=4)
    return _after(stage, client, client.ask("send", *words(*range(5))))


def _answer_lost(stage: Stage) -> Observed:
    stage.topic()
    stage.proxy.cut(PRODUCE)
    client = stage.producer()
    return _after(stage, client, client.ask("send", *words(*range(5))))


def _wrong_correlation_id(stage: Stage) -> Observed:
    stage.topic()
    proxy = stage.proxy

    def damage(frame: bytes) -> bytes | None:
        return None if proxy.hits else bytes([frame[0] ^ 0x40]) + frame[1:]

    proxy.damage(PRODUCE, damage)
    client = stage.producer()
    return _after(stage, client, client.ask("send", *words(*range(5))))


def _producer_forgotten(stage: Stage) -> Observed:
    stage.topic()
    client = stage.producer()
    client.ask("send", *words(10, 11, 12))
    stage.forget_producers(3)
    return _after(stage, client, client.ask("send", *words(*range(5))))


def _records_lost(stage: Stage) -> Observed:
    stage.topic()
    client = stage.producer()
    for value in (10, 11, 12):
        client.ask("send", *words(value))
    stage.replace_records(1, [])
    return _after(stage, client, client.ask("send", *words(*range(5))))


def _topic_not_authorized(stage: Stage) -> Observed:
    stage.topic()
    stage.topic("secrets")
    stage.broker.fail("Produce", error="TOPIC_AUTHORIZATION_FAILED", topic="secrets")
    client = stage.producer()
    records = words(*range(5))
    records[CULPRIT] = word(str(CULPRIT), topic="secrets")
    return _after(stage, client, client.ask("send", *records))


def _broker_gone(stage: Stage) -> Observed:
    stage.topic()
    client = stage.producer()
    client.ask("send", *words(9))
    stage.broker.stop()
    answer = client.ask("send", *words(*range(5)))
    return Observed(told=told_of(answer), time=answer.time)


def _name_refused(stage: Stage) -> Observed:
    stage.topic()
    stage.broker.fail("ApiVersions", error="INVALID_REQUEST")
    client = stage.producer()
    answer = stage.made if stage.made.error != OK else client.ask("send", *words(0))
    return Observed(told=told_of(answer), time=answer.time)


PRODUCING = (
    Scenario(
        "invalid-record-plain",
        "One invalid record, not idempotent",
        "Five records go in one batch to a compacted topic; the third has no key. The broker "
        "refuses the batch with INVALID_RECORD, and names the third record and the reason "
        "(KIP-467). Idempotence is off.",
        CULPRIT_ALONE,
        lambda stage: _one_invalid(stage, is_idempotent=False),
    ),
    Scenario(
        "invalid-record",
        "One invalid record, idempotent",
        "The same with an idempotent producer, whose sequence numbers have to close over the gap.",
        CULPRIT_ALONE,
        lambda stage: _one_invalid(stage, is_idempotent=True),
    ),
    Scenario(
        "record-too-large",
        "One record too large for its topic",
        "Of five records in one batch the third is larger than `max.message.bytes`, and the batch "
        "with it: MESSAGE_TOO_LARGE. The four others would fit.",
        (
            CULPRIT_ALONE[0],
            CULPRIT_ALONE[1],
            IN_TIME_WISH,
            GOES_ON,
        ),
        _record_too_large,
    ),
    Scenario(
        "too-few-replicas",
        "Too few replicas, for a while",
        "The broker answers NOT_ENOUGH_REPLICAS four times, and then has replicas again.",
        (ALL_OK, STORED_ONCE, IN_TIME_WISH),
        _too_few_replicas,
    ),
    Scenario(
        "answer-lost",
        "An answer cut in its midst",
        "The broker appends the batch; of its answer the first half arrives, and then the "
        "connection ends.",
        (ALL_OK, STORED_ONCE, IN_TIME_WISH),
        _answer_lost,
    ),
    Scenario(
        "wrong-correlation-id",
        "An answer to another request",
        "The broker appends the batch; its answer has a correlation id that was never sent. Later "
        "answers are right.",
        (ALL_OK, STORED_ONCE, IN_TIME_WISH),
        _wrong_correlation_id,
    ),
    Scenario(
        "producer-forgotten",
        "Producer forgotten after retention",
        "Three records are acknowledged and deleted by retention, and with them all that the "
        "partition knew of the producer: UNKNOWN_PRODUCER_ID for the next batch. Nothing that "
        "anybody would miss is lost.",
        (ALL_OK, STORED_ONCE, GOES_ON),
        _producer_forgotten,
        profile="strict",
    ),
    Scenario(
        "records-lost",
        "Acknowledged records lost",
        "Three records are acknowledged; then a leader without the last two of them takes over, "
        "and answers the next batch with OUT_OF_ORDER_SEQUENCE_NUMBER.",
        (
            Wish(
                "the program hears that something is lost",
                lambda seen: any(map(is_error, seen.told)),
            ),
            IN_TIME_WISH,
            GOES_ON,
        ),
        _records_lost,
    ),
    Scenario(
        "topic-not-authorized",
        "One topic not allowed",
        "Of five records the third goes to a topic that the producer may not write to: "
        "TOPIC_AUTHORIZATION_FAILED.",
        (
            CULPRIT_ALONE[0],
            CULPRIT_ALONE[1],
            Wish("it is told at once", lambda seen: seen.time == AT_ONCE),
            GOES_ON,
        ),
        _topic_not_authorized,
    ),
    Scenario(
        "broker-gone",
        "No broker for the delivery time-out",
        "The broker stops between two sends, and does not come back.",
        (
            Wish("each record is told as failed", lambda seen: all(map(is_error, seen.told))),
            IN_TIME_WISH,
        ),
        _broker_gone,
    ),
    Scenario(
        "name-refused",
        "Connection refused in words",
        "The broker answers every ApiVersions with INVALID_REQUEST, as where it does not like the "
        "client's name (KIP-511).",
        (
            Wish("the program gets an error", lambda seen: any(map(is_error, seen.told))),
            IN_TIME_WISH,
            Wish(
                "the error is about the refusal",
                lambda seen: any(
                    "InvalidRequest" in told or "INVALID_REQUEST" in told for told in seen.told
                ),
            ),
        ),
        _name_refused,
    ),
)
