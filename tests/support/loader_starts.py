"""Starts over damaged directories: Kafka's loader and a prediction, in the same words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ottla.logs.recovery import RecoveryPrediction


def of_loader(row: dict[str, Any]) -> dict[str, Any]:
    """Return what Kafka's loader left, in the words of a prediction."""
    expected = {
        "error": row["error"],
        "files_deleted": set(row["files_deleted"]),
        "files_created": set(row["files_created"]),
    }
    if row["error"] is not None:
        return expected
    end_offset = row["log_end_offset"]
    # The file as the loader left it; Kafka cuts it to the log's end a moment later.
    epochs = {epoch: start for epoch, start in row["leader_epochs"] if start < end_offset}
    return expected | {
        "first_undecided_offset": row["first_undecided_offset"],
        "leader_epochs": set(epochs.items()),
        "producers": {tuple(producer.values()) for producer in row["producers"]},
        "rebuilt": {
            segment["file"]: (
                segment["index_entries"],
                tuple(map(tuple, segment["aborted"])),
                segment["largest_timestamp"],
            )
            for segment in row["segments"]
            if "index_entries" in segment and segment["bytes_before"] is not None
        },
    }


def of_prediction(after: RecoveryPrediction) -> dict[str, Any]:
    """Return what a prediction says of the files beside the segments, and of producers."""
    predicted = {
        "error": after.error,
        "files_deleted": set(after.files_deleted),
        "files_created": set(after.files_created),
    }
    if not after.opens:
        return predicted
    return predicted | {
        "first_undecided_offset": after.first_undecided_offset,
        "leader_epochs": set(after.leader_epochs),
        "producers": {
            (
                p.producer_id,
                p.producer_epoch,
                p.last_sequence,
                p.last_offset,
                p.last_timestamp,
                p.coordinator_epoch,
                p.transaction_first_offset,
            )
            for p in after.producers
        },
        "rebuilt": {
            file: (rebuilt.offset_entries, rebuilt.aborted, rebuilt.max_timestamp)
            for file, rebuilt in after.rebuilt.items()
        }
        if not after.clean
        else {},
    }


def kept(after: RecoveryPrediction) -> tuple[object, ...]:
    """Return which log a prediction leaves: its ends, and the bytes of each segment."""
    if not after.opens:
        return (after.error,)
    return after.error, after.log_start_offset, after.log_end_offset, dict(after.segments)


def kept_by_loader(row: dict[str, Any]) -> tuple[object, ...]:
    """Return which log Kafka's loader left."""
    if row["error"] is not None:
        return (row["error"],)
    segments = {segment["file"]: segment["bytes"] for segment in row["segments"]}
    return None, row["log_start_offset"], row["log_end_offset"], segments
