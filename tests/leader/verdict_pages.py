"""`docs/verdicts.md`: every error code of a leader with an example that the tests decide.

    python tests/leader/verdict_pages.py > docs/verdicts.md

What one request decides is a row of the numbered vectors, what takes a history a row of the
producers' tests or a short story here. The answers are those of the engine.
"""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import ottla

if __name__ == "__main__":
    root = Path(__file__).resolve().parents[2]
    sys.path[:0] = [str(root), str(root / "tests")]

from leader import test_producer_state as producers
from leader.test_vectors_of_the_specification import VECTORS, Refused, Vector, decided
from ottla.records import kafka_versions, profile_differences, release_differences

if TYPE_CHECKING:
    from collections.abc import Callable

INTRODUCTION = """\
# Verdicts

What a leader answers to a produce request, one worked example for each error code. `ottla.validate`
decides over one request, `ottla.Leader` over a partition with its producers, `ottla validate` over
files. Unless an example says otherwise, a client sends Produce 9, the log's end is offset 1000, the
broker's clock stands at 1700000000000, and the records carry times from then on.

A refusal has a code, a message, and the records to blame where there are any. `strict`, the default
profile, names culprits where `kafka` answers what Apache Kafka would; the last sections list every
difference between the two, and between releases of Kafka. A refused request changes nothing.
"""

RELEASES_INTRODUCTION = (
    "`kafka_version` names the release whose rules hold, as a line (`4.4`) or a release (`4.2.2`):"
    " an argument of `ottla.validate`, `ottla.Leader`, `ottla.TopicConfig` and"
    " `ottla.predict_recovery`, an option of `ottla validate`. `from` names the first release of"
    " each line that decides the newer way; a line without one does not."
)

MEANINGS = {
    -1: "Kafka's leader fails inside: a producer learns nothing, and may send the same for ever.",
    0: "The batch is taken; `stored` holds the bytes for the log.",
    1: "An offset was asked for that the log does not have.",
    2: "A checksum, a size or a magic byte is wrong. Producers send the batch again.",
    10: "The batch is larger than `max.message.bytes`. Producers split it.",
    18: "The record set is larger than a segment.",
    32: "A timestamp lies outside the topic's window, or says what only brokers may say.",
    43: "Idempotence or transactions meet a log of an older record format.",
    45: "A producer's sequence does not follow on the one before.",
    47: "The producer's epoch is older than the log's: another instance has taken over.",
    48: "The batch does not fit the state of the producer's transaction.",
    49: "One request carries the transactions of several producers.",
    52: "A marker comes from a coordinator that has been replaced.",
    53: "A transactional batch in a request without an authorised transactional id.",
    59: "The leader knows nothing of the producer, whose records are deleted or expired.",
    76: "The codec is newer than the request's version.",
    87: "A record breaks a rule of the format or of the topic. Producers give the batch up.",
}

# The vector that shows a code best, by number and first words; and in which profile.
SHOWN = {
    0: ("4", "none to zstd", "strict"),
    -1: ("7", "gzip", "kafka"),
    2: ("57", "wrong checksum", "strict"),
    10: ("91", "larger than max.message.bytes", "strict"),
    18: ("93", "larger than segment.bytes", "strict"),
    32: ("52", "compacted, keys", "strict"),
    43: ("95", "idempotent none", "strict"),
    53: ("96", "transactional without transactional id", "strict"),
    76: ("62", "zstd in Produce 6", "strict"),
    87: ("5", "deltas 0,2,1", "strict"),
}


def out_of_order() -> ottla.Verdict:
    leader = producers.a_leader(profile="strict")
    producers.send(leader, producers.batch(1, 0, 3))
    return producers.send(leader, producers.batch(1, 9))


def older_epoch() -> ottla.Verdict:
    leader = producers.a_leader(profile="strict")
    producers.send(leader, producers.batch(1, 0, 3))
    return producers.send(leader, producers.batch(0, 3))


def plain_in_transaction() -> ottla.Verdict:
    leader = producers.a_leader(profile="strict")
    producers.send(leader, producers.batch(0, 0, is_transactional=True))
    return producers.send(leader, producers.batch(0, 1))


def several_producers() -> ottla.Verdict:
    both = [producers.batch(0, 0, producer_id=one, is_transactional=True) for one in (7, 8)]
    leader = producers.a_leader(profile="strict")
    return producers.send(leader, b"".join(both), api_version=2)


def older_coordinator() -> ottla.Verdict:
    leader = producers.a_leader(profile="strict")
    producers.end(leader, 0, coordinator_epoch=3)
    return producers.end(leader, 0, coordinator_epoch=2)


def forgotten_producer() -> ottla.Verdict:
    return producers.send(producers.a_leader(profile="strict"), producers.batch(0, 5))


def beyond_the_high_watermark() -> ottla.KafkaError:
    leader = producers.a_leader(profile="strict")
    producers.send(leader, producers.batch(0, 0, 3))
    try:
        leader.delete_records(1)
    except ottla.KafkaError as error:
        return error
    raise AssertionError("taken")


STORIES: dict[int, tuple[str, Callable[[], ottla.Verdict | ottla.KafkaError]]] = {
    1: (
        (
            "Three records are appended, none is replicated yet; then the records below offset 1"
            " are to be deleted."
        ),
        beyond_the_high_watermark,
    ),
    45: (
        (
            "Producer 7 of epoch 1 has sent sequences 0 to 2; then it sends one record with"
            " sequence 9."
        ),
        out_of_order,
    ),
    47: (
        (
            "Producer 7 of epoch 1 has sent sequences 0 to 2; then an instance of epoch 0 sends"
            " sequence 3."
        ),
        older_epoch,
    ),
    48: (
        "Producer 7 has a transaction open; then it sends a batch that is not transactional.",
        plain_in_transaction,
    ),
    49: (
        "Produce 2, which no gate holds to one batch, brings transactions of producers 7 and 8.",
        several_producers,
    ),
    52: (
        (
            "A marker of coordinator epoch 3 has ended producer 7's transaction; then one of"
            " coordinator epoch 2 comes."
        ),
        older_coordinator,
    ),
    59: (
        "A log without any state of producer 7, which sends sequence 5 in Produce 9.",
        forgotten_producer,
    ),
}


def vector_of(code: int) -> tuple[Vector, str]:
    """Return the row that shows a code, and the profile it does so in."""
    number, words, profile = SHOWN[code]
    rows = [v for v in VECTORS if v.number == number and v.says.startswith(words)]
    return rows[0], profile


def codes() -> set[int]:
    """Return the codes that the rows of both tests expect."""
    expected = {
        outcome.code
        for vector in VECTORS
        for outcome in (vector.kafka, vector.strict)
        if isinstance(outcome, Refused)
    }
    state = {producers.INVALID_EPOCH, producers.INVALID_TXN, producers.OUT_OF_ORDER}
    return expected | state | {producers.UNKNOWN, producers.FENCED} | {0, 1, 49}


def example(code: int) -> tuple[str, ottla.Verdict | ottla.KafkaError]:
    """Return what comes to a leader, and its answer."""
    if code in STORIES:
        story, play = STORIES[code]
        return story, play()
    vector, profile = vector_of(code)
    asked = [f"{key}={value}" for key, value in {**vector.config, **vector.request}.items()]
    told = f" ({', '.join(asked)})" if asked else ""
    story = f"Vector {vector.number}, profile {profile}: {vector.says}{told}."
    return story, decided(vector, profile)


def answer(found: ottla.Verdict | ottla.KafkaError) -> list[str]:
    """Return an answer, a field a line."""
    if isinstance(found, ottla.KafkaError):
        return [f"KafkaError({found.error_code}): {found}"]
    fields = ["accepted", "error", "error_name", "error_message", "is_request_wide"]
    if found.accepted:
        fields = ["accepted", "base_offset", "last_offset", "max_timestamp_ms", "is_rebuilt"]
    lines = [f"{name} = {getattr(found, name)!r}" for name in fields]
    for error in found.record_errors:
        told = json.dumps(error.message, ensure_ascii=False)
        lines.append(f"record_errors: {error.batch_index}, {error.error}, {told}")
    return lines


def verdicts_markdown() -> str:
    """Return the page."""
    parts = [INTRODUCTION]
    for code in sorted(MEANINGS):
        story, found = example(code)
        title = found.error_name if isinstance(found, ottla.Verdict) else "OFFSET_OUT_OF_RANGE"
        parts += [
            f"## {code} {title}\n",
            textwrap.fill(MEANINGS[code], 100) + "\n",
            textwrap.fill(f"*{story}*", 100) + "\n",
            "```text\n" + "\n".join(answer(found)) + "\n```\n",
        ]
    parts += ["## Where strict differs from Kafka\n", "| row | kafka | strict | why |"]
    parts.append("| --- | --- | --- | --- |")
    for row in profile_differences():
        cells = (f"`{row['id']}`", row["kafka"], row["strict"], row["why"])
        parts.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join([*parts, *releases_markdown()]) + "\n"


def releases_markdown() -> list[str]:
    """Return the section about releases, a line each."""
    releases = kafka_versions()
    known = f"Known are {', '.join(releases[:-1])} and {releases[-1]}, which is the default."
    parts = [
        "\n## What releases decide otherwise\n",
        textwrap.fill(f"{RELEASES_INTRODUCTION} {known}", 100) + "\n",
        "| row | from | before | since |",
        "| --- | --- | --- | --- |",
    ]
    for row in release_differences():
        cells = (f"`{row['id']}`", ", ".join(row["releases"]), row["before"], row["since"])
        parts.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return parts


if __name__ == "__main__":
    sys.stdout.write(verdicts_markdown())
