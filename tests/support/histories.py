"""Histories of a partition, told by Apache Kafka, driven through a `BrokerLog`."""

from __future__ import annotations

import base64
from typing import Any

import ottla
from support.broker_log import BrokerLog

Answer = dict[str, Any]


class History:
    """One case of `history.jsonl`: operations in, the answers of a leader out.

    Every marker is sent with the transaction version of the case, 0 without one.
    """

    def __init__(self, case: dict[str, Any], kafka_version: str = "4.1") -> None:
        self.case = case
        self.transaction_version = case.get("transaction_version", 0)
        cfg = case["cfg"]
        self.follows_end = cfg["auto_high_watermark"]
        self.log = BrokerLog(
            config=ottla.TopicConfig(
                message_timestamp_before_max_ms=2**63 - 1,
                message_timestamp_after_max_ms=2**63 - 1,
                producer_id_expiration_ms=cfg["expiration_ms"],
            ),
            leader_epoch=7,
            profile="kafka",
            kafka_version=kafka_version,
            transaction_verification=cfg["verification"],
        )
        self.guards: dict[int, ottla.VerificationGuard] = {}

    def answers(self) -> list[Answer]:
        """Do every operation; give its answer."""
        return [self.answer(op) for op in self.case["ops"]]

    def answer(self, op: dict[str, Any]) -> Answer:
        """Do one operation."""
        try:
            answer = getattr(self, f"_{op['op']}")(op)
        except ottla.KafkaError as error:
            answer = {"code": error.error_code}
        if self.follows_end:
            self.log.leader.advance_high_watermark(self.log.leader.log_end_offset)
        return {"code": 0} | (answer or {})

    def _append(self, verdict: ottla.Verdict) -> Answer:
        if not verdict.accepted:
            return {"code": verdict.error}
        self.log.store(verdict)
        answer = {"base": verdict.base_offset, "last": verdict.last_offset}
        if verdict.is_duplicate:
            answer |= {"duplicate": True, "log_append_time": verdict.log_append_time_ms}
        return answer

    def _produce(self, op: dict[str, Any]) -> Answer:
        records = base64.b64decode(op["in"])
        producer_id = next(ottla.read_batches(records)).producer_id
        guard = self.guards.get(producer_id) if op.get("guard") else None
        verdict = self.log.leader.append(
            records,
            now_ms=op["t"],
            api_version=None,
            transactional_id="t",
            origin=op.get("origin", "client"),
            guard=guard,
        )
        return self._append(verdict)

    def _marker(self, op: dict[str, Any]) -> Answer:
        verdict = self.log.leader.end_transaction(
            op["pid"],
            op["epoch"],
            coordinator_epoch=op["coordinator_epoch"],
            commit=op["commit"],
            now_ms=op["t"],
            transaction_version=self.transaction_version,
        )
        return self._append(verdict)

    def _replicate(self, op: dict[str, Any]) -> Answer:
        records = base64.b64decode(op["in"])
        return self._append(self.log.leader.append_as_follower(records, now_ms=op["t"]))

    def _verify(self, op: dict[str, Any]) -> Answer:
        guard = self.log.leader.begin_verification(
            op["pid"],
            op["epoch"],
            op["seq"],
            now_ms=op["t"],
            transaction_version=2 if op["v2"] else 1,
        )
        if guard is None:
            self.guards.pop(op["pid"], None)
        else:
            self.guards[op["pid"]] = guard
        return {"guard": guard is not None}

    def _expire(self, op: dict[str, Any]) -> None:
        self.log.leader.expire_producers(op["t"])

    def _delete_records(self, op: dict[str, Any]) -> None:
        self.log.delete_records(op["to"])

    def _high_watermark(self, op: dict[str, Any]) -> None:
        self.log.leader.advance_high_watermark(op["to"])

    def _roll(self, _op: dict[str, Any]) -> None:
        self.log.roll()

    def _truncate(self, op: dict[str, Any]) -> None:
        self.log.truncate(op["to"], op["t"])

    def _restart(self, op: dict[str, Any]) -> None:
        self.guards.clear()
        self.log.restart(op["t"], is_clean=op["clean"])

    def final(self) -> dict[str, Any]:
        """Return the state at the end."""
        leader = self.log.leader
        unstable = leader.first_unstable_offset
        return {
            "log_start": leader.log_start_offset,
            "log_end": leader.log_end_offset,
            "high_watermark": leader.high_watermark,
            "last_stable": leader.last_stable_offset,
            "first_unstable": -1 if unstable is None else unstable,
            "map_end": leader.producer_end_offset,
            "producers": [producer_of(producer) for producer in leader.producers],
            "aborted": [
                [entry.producer_id, entry.first_offset, entry.last_offset, entry.last_stable_offset]
                for entry in leader.aborted_between(leader.log_start_offset, leader.log_end_offset)
            ],
        }


def producer_of(producer: ottla.ProducerState) -> dict[str, Any]:
    """Return a producer as the vectors write it."""
    first_offset = producer.transaction_first_offset
    return {
        "pid": producer.producer_id,
        "epoch": producer.producer_epoch,
        "coordinator_epoch": producer.coordinator_epoch,
        "last_timestamp": producer.last_timestamp_ms,
        "txn_first": -1 if first_offset is None else first_offset,
        "batches": [
            [
                batch.base_sequence,
                batch.last_sequence,
                batch.base_offset,
                batch.last_offset,
                batch.max_timestamp_ms,
            ]
            for batch in producer.batches
        ],
    }


def differences(case: dict[str, Any], kafka_version: str = "4.1") -> list[str]:
    """Return what a leader says other than Kafka in one history."""
    history = History(case, kafka_version)
    found = []
    for index, (op, expected) in enumerate(zip(case["ops"], case["answers"], strict=True)):
        answer = history.answer(op)
        wanted = {key: value for key, value in expected.items() if key != "exception"}
        if answer != wanted:
            found.append(f"op {index} ({op['op']}): answered {answer}, Kafka {expected}")
    final = history.final()
    found += [
        f"final {key}: {final[key]}, Kafka {value}"
        for key, value in case["final"].items()
        if final[key] != value
    ]
    return found
