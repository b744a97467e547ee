//! Why a producer may not append, with Kafka's error codes.

use super::transactions::NotBegun;
use ottla_format::error::Error;
use ottla_format::error_code::ErrorCode;
use std::fmt;

/// Why a producer may not append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the fields say what they are
pub enum ProducerRefusal {
    /// An epoch below the producer's: another instance has taken over.
    StaleEpoch { producer_id: i64, found: i16, current: i16 },
    /// A marker of transaction version 2 whose epoch is not above the producer's (KIP-1228).
    MarkerEpoch { producer_id: i64, found: i16, current: i16 },
    /// A transaction begins about which the coordinator was not asked (KIP-890).
    NotVerified { producer_id: i64, producer_epoch: i16 },
    /// Plain records inside the producer's own transaction.
    PlainInTransaction { producer_id: i64, first_offset: i64 },
    /// The sequence is not the one that follows.
    OutOfOrderSequence { producer_id: i64, producer_epoch: i16, found: i32, expected: i32 },
    /// Nothing is known of a producer that continues; it recovers by KIP-360.
    UnknownProducer { producer_id: i64, producer_epoch: i16, found: i32 },
    /// A marker of a coordinator that another has replaced.
    CoordinatorFenced { producer_id: i64, found: i32, current: i32 },
    /// A marker ends a transaction that its data do not begin.
    NotBegun(NotBegun),
    /// A marker that cannot be read.
    UnreadableMarker(Error),
}

impl ProducerRefusal {
    /// Stable kebab-case name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::StaleEpoch { .. } => "stale-epoch",
            Self::MarkerEpoch { .. } => "marker-epoch",
            Self::NotVerified { .. } => "not-verified",
            Self::PlainInTransaction { .. } => "plain-in-transaction",
            Self::OutOfOrderSequence { .. } => "out-of-order-sequence",
            Self::UnknownProducer { .. } => "unknown-producer",
            Self::CoordinatorFenced { .. } => "coordinator-fenced",
            Self::NotBegun(_) => "transaction-not-begun",
            Self::UnreadableMarker(error) => error.kind.name(),
        }
    }

    /// Kafka's error code.
    pub fn error(&self) -> ErrorCode {
        match self {
            Self::StaleEpoch { .. } | Self::MarkerEpoch { .. } => ErrorCode::InvalidProducerEpoch,
            Self::NotVerified { .. } | Self::PlainInTransaction { .. } => {
                ErrorCode::InvalidTxnState
            }
            Self::OutOfOrderSequence { .. } => ErrorCode::OutOfOrderSequenceNumber,
            Self::UnknownProducer { .. } => ErrorCode::UnknownProducerId,
            Self::CoordinatorFenced { .. } => ErrorCode::TransactionCoordinatorFenced,
            // Kafka's code does not expect such a marker.
            Self::NotBegun(_) | Self::UnreadableMarker(_) => ErrorCode::UnknownServerError,
        }
    }
}

impl fmt::Display for ProducerRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::StaleEpoch { producer_id, found, current } => write!(
                f,
                "producer {producer_id} sent epoch {found}, expected {current} or above: another \
                 instance has taken over"
            ),
            Self::MarkerEpoch { producer_id, found, current } => write!(
                f,
                "a marker of transaction version 2 for producer {producer_id} has epoch {found}, \
                 expected one above {current}"
            ),
            Self::NotVerified { producer_id, producer_epoch } => write!(
                f,
                "producer {producer_id} of epoch {producer_epoch} has no transaction open here, \
                 and the coordinator did not verify one for these records"
            ),
            Self::PlainInTransaction { producer_id, first_offset } => write!(
                f,
                "producer {producer_id} sent records outside of a transaction, expected records of \
                 the one it has open since offset {first_offset}"
            ),
            Self::OutOfOrderSequence { producer_id, producer_epoch, found, expected } => write!(
                f,
                "producer {producer_id} of epoch {producer_epoch} sent sequence {found}, expected \
                 {expected}"
            ),
            Self::UnknownProducer { producer_id, producer_epoch, found } => write!(
                f,
                "producer {producer_id} of epoch {producer_epoch} sent sequence {found}, expected \
                 0: nothing is known of what it sent before"
            ),
            Self::CoordinatorFenced { producer_id, found, current } => write!(
                f,
                "a marker for producer {producer_id} comes from coordinator epoch {found}, \
                 expected {current} or above"
            ),
            Self::NotBegun(NotBegun { transaction }) => write!(
                f,
                "the marker at offset {} ends a transaction of producer {} from offset {} that was \
                 ended before",
                transaction.last_offset, transaction.producer_id, transaction.first_offset
            ),
            Self::UnreadableMarker(error) => write!(f, "a transaction marker with {error}"),
        }
    }
}

impl std::error::Error for ProducerRefusal {}
