"""Failures in transactions."""

from __future__ import annotations

from benches.failures.client import OK, Client
from benches.failures.scenarios.producing import CULPRIT
from benches.failures.scenarios.stage import (
    GROUP,
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

NOTHING_COMMITTED = Wish("nothing of it is committed", lambda seen: "0" not in seen.stored)
NEXT_WORKS = Wish(
    "the next transaction works",
    lambda seen: seen.calls.get("next commit") == OK and seen.stored[-1:] == ["5"],
)


def _finish(stage: Stage, client: Client, seen: Observed) -> Observed:
    """Abort, and send and commit another record."""
    ask = client.ask
    if is_error(seen.calls["commit"]):
        seen.calls["abort"] = ask("abort").error
    seen.calls["next begin"] = ask("begin").error
    seen.calls["next send"] = told_of(ask("send", word("5")))[0]
    seen.calls["next commit"] = ask("commit").error
    seen.stored = stage.committed()
    return seen


def _invalid_record(stage: Stage) -> Observed:
    stage.topic(cleanup_policy="compact")
    client = stage.producer(transactional_id="t")
    client.ask("init")
    client.ask("begin")
    records = words(*range(5))
    records[CULPRIT] = word(str(CULPRIT), key="-")
    answer = client.ask("send", *records)
    seen = Observed(told=told_of(answer), time=answer.time)
    seen.says_why = has_no_key(answer.words)
    seen.calls["commit"] = client.ask("commit").error
    return _finish(stage, client, seen)


def _fenced(stage: Stage) -> Observed:
    stage.topic()
    client, other = stage.producer(transactional_id="t"), stage.producer(transactional_id="t")
    client.ask("init")
    client.ask("begin")
    client.ask("send", *words(0))
    other.ask("init")
    other.ask("begin")
    other.ask("send", *words(1))
    answer = client.ask("commit")
    seen = Observed(calls={"commit": answer.error}, time=answer.time)
    seen.calls["commit again"] = client.ask("commit").error
    seen.calls["abort"] = client.ask("abort").error
    seen.calls["the other's commit"] = other.ask("commit").error
    seen.stored = stage.committed()
    return seen


def _commit_late(stage: Stage) -> Observed:
    stage.topic()
    client = stage.producer(transactional_id="t")
    client.ask("init")
    client.ask("begin")
    client.ask("send", *words(0))
    fault = stage.broker.fail("EndTxn")
    fault.pause()
    answer = client.ask("commit")
    seen = Observed(calls={"commit": answer.error}, time=answer.time)
    fault.release()
    fault.remove()
    seen.calls["commit again"] = client.ask("commit").error
    seen.calls["next begin"] = client.ask("begin").error
    seen.calls["next send"] = told_of(client.ask("send", word("5")))[0]
    seen.calls["next commit"] = client.ask("commit").error
    seen.stored = stage.committed()
    return seen


def _offsets_not_authorized(stage: Stage) -> Observed:
    stage.topic()
    client = stage.producer(transactional_id="t")
    stage.consumer(client, group=GROUP)
    client.ask("init")
    client.ask("begin")
    client.ask("send", *words(0))
    for api in ("TxnOffsetCommit", "AddOffsetsToTxn"):
        stage.broker.fail(api, error="GROUP_AUTHORIZATION_FAILED", group=GROUP)
    answer = client.ask("offsets", TOPIC, "1")
    seen = Observed(calls={"send offsets": answer.error}, time=answer.time)
    seen.calls["commit"] = client.ask("commit").error
    if is_error(seen.calls["commit"]):
        seen.calls["abort"] = client.ask("abort").error
    seen.stored = stage.committed()
    return seen


TRANSACTING = (
    Scenario(
        "invalid-record-transaction",
        "One invalid record in a transaction",
        "Five records go in one batch of a transaction to a compacted topic; the third has no key. "
        "The program does not look, and commits; if that fails it aborts, and it begins the next.",
        (
            Wish("the commit fails", lambda seen: is_error(seen.calls["commit"])),
            NOTHING_COMMITTED,
            Wish(
                "the culprit can be told from the others",
                lambda seen: (
                    len(seen.told) > CULPRIT
                    and seen.told[CULPRIT] not in [*seen.told[:CULPRIT], *seen.told[CULPRIT + 1 :]]
                ),
            ),
            NEXT_WORKS,
        ),
        _invalid_record,
    ),
    Scenario(
        "fenced-in-commit",
        "Fenced while committing",
        "Another producer initialises the same transactional id in the midst of a transaction; "
        "then the first one commits, and commits again.",
        (
            Wish(
                "the commit says that it is fenced",
                lambda seen: (
                    "fenced" in seen.calls["commit"].lower()
                    or "InvalidProducerEpoch" in seen.calls["commit"]
                ),
            ),
            Wish(
                "so does whatever is called next",
                lambda seen: seen.calls["commit again"] == seen.calls["commit"],
            ),
            Wish("the other's records alone are committed", lambda seen: seen.stored == ["1"]),
        ),
        _fenced,
    ),
    Scenario(
        "commit-late",
        "A commit that is not answered in time",
        "The coordinator does not answer the commit within the time-out. The program commits "
        "again, and the coordinator answers.",
        (
            Wish(
                "the first commit ends with an error, within its time-out",
                lambda seen: is_error(seen.calls["commit"]) and seen.is_told_in_time,
            ),
            Wish("the second commit works", lambda seen: seen.calls["commit again"] == OK),
            Wish(
                "each record is committed, once",
                lambda seen: seen.stored == ["0", "5"],
            ),
        ),
        _commit_late,
    ),
    Scenario(
        "offsets-not-authorized",
        "Offsets of a group that is not allowed",
        "In a transaction, the offsets of a group are refused with GROUP_AUTHORIZATION_FAILED. The "
        "program does not look, and commits.",
        (
            Wish(
                "the call names the error",
                lambda seen: "group" in seen.calls["send offsets"].lower(),
            ),
            Wish("the commit fails", lambda seen: is_error(seen.calls["commit"])),
            NOTHING_COMMITTED,
        ),
        _offsets_not_authorized,
    ),
)
