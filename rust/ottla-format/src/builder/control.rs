//! Control batches: end-transaction markers and changes of a quorum's leader.

use super::BuildError;
use super::fields::BatchFields;
use super::records::{NewRecord, build_batch};
use crate::compression::Codecs;
use crate::control_record::control_type;
use crate::header::NONE;
use crate::varint::write_unsigned;

/// A control record to write, in version 0 (`docs/kafka/record-batch.md` §8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // Kafka's own names
pub enum NewControlRecord<'a> {
    /// Aborts a transaction.
    Abort { coordinator_epoch: i32 },
    /// Commits a transaction.
    Commit { coordinator_epoch: i32 },
    /// A new leader of a KRaft quorum (KIP-595).
    LeaderChange { leader_id: i32, voters: &'a [i32], granting_voters: &'a [i32] },
    /// What else a KRaft quorum writes into its log and its snapshots (KIP-630).
    OfQuorum { kind: i16, value: &'a [u8] },
}

/// Builds a control batch of one record. Of the fields only the base offset, the leader epoch and,
/// for an end-transaction marker, producer id and epoch are used; the others are set as Kafka sets
/// them.
///
/// # Errors
/// [`BuildError`].
pub fn build_control_batch(
    fields: &BatchFields,
    timestamp: i64,
    record: NewControlRecord<'_>,
    codecs: &mut Codecs,
) -> Result<Vec<u8>, BuildError> {
    let (kind, value) = match record {
        NewControlRecord::Abort { coordinator_epoch } => {
            (control_type::ABORT, marker(coordinator_epoch))
        }
        NewControlRecord::Commit { coordinator_epoch } => {
            (control_type::COMMIT, marker(coordinator_epoch))
        }
        NewControlRecord::LeaderChange { leader_id, voters, granting_voters } => {
            (control_type::LEADER_CHANGE, leader_change(leader_id, voters, granting_voters))
        }
        NewControlRecord::OfQuorum { kind, value } => (kind, value.to_vec()),
    };
    let is_marker =
        matches!(record, NewControlRecord::Abort { .. } | NewControlRecord::Commit { .. });
    if is_marker && fields.producer_id == NONE {
        return Err(BuildError::MarkerWithoutProducer);
    }
    let version = 0i16;
    let key = [version.to_be_bytes(), kind.to_be_bytes()].concat();
    let fields = BatchFields {
        base_offset: fields.base_offset,
        partition_leader_epoch: fields.partition_leader_epoch,
        producer_id: if is_marker { fields.producer_id } else { NONE },
        producer_epoch: if is_marker { fields.producer_epoch } else { -1 },
        is_transactional: is_marker,
        is_control: true,
        ..BatchFields::default()
    };
    let record =
        NewRecord { timestamp, key: Some(&key), value: Some(&value), ..NewRecord::default() };
    build_batch(&fields, &[record], codecs)
}

fn marker(coordinator_epoch: i32) -> Vec<u8> {
    let version = 0i16;
    [&version.to_be_bytes()[..], &coordinator_epoch.to_be_bytes()].concat()
}

/// A `LeaderChangeMessage` of version 0 in Kafka's flexible encoding: counts plus one, and an empty
/// set of tagged fields (KIP-482) after each voter and at the end.
fn leader_change(leader_id: i32, voters: &[i32], granting_voters: &[i32]) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend_from_slice(&0i16.to_be_bytes());
    out.extend_from_slice(&leader_id.to_be_bytes());
    for ids in [voters, granting_voters] {
        write_unsigned(&mut out, (ids.len() as u64).saturating_add(1));
        for id in ids {
            out.extend_from_slice(&id.to_be_bytes());
            out.push(0);
        }
    }
    out.push(0);
    out
}
