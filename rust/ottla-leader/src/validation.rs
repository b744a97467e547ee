//! What a record set is judged by, and what is found wrong with it on the way.

use crate::config::TopicConfig;
use crate::metrics::Metrics;
use crate::profiles::Difference;
use crate::reason::Reason;
use crate::refusal::{Decision, RecordError, RecordErrors, Refusal};
use crate::request::Request;
use ottla_format::clients::ClientFault;
use ottla_format::compression::Reading;
use ottla_format::error::{ErrorKind, Field};
use ottla_format::error_code::ErrorCode;
use ottla_format::limits::Limits;
use ottla_log::kafka_version::ReleaseDifference;
use std::ops::RangeInclusive;

/// The validation of one record set.
pub(crate) struct Validation<'p> {
    pub(crate) config: &'p TopicConfig,
    pub(crate) request: &'p Request,
    pub(crate) metrics: &'p mut Metrics,
    pub(crate) limits: Limits,
    /// Records are written anew, as far as is known before they are read.
    pub(crate) is_rebuilt: bool,
    /// What the proof found of the only payload.
    pub(crate) refused: Option<ErrorKind>,
    errors: RecordErrors,
}

impl<'p> Validation<'p> {
    pub(crate) fn new(
        config: &'p TopicConfig,
        request: &'p Request,
        metrics: &'p mut Metrics,
        limits: Limits,
    ) -> Self {
        let errors = RecordErrors::default();
        Self { config, request, metrics, limits, is_rebuilt: false, refused: None, errors }
    }

    pub(crate) fn is_strict(&self, row: Difference) -> bool {
        self.request.is_strict(row)
    }

    /// The refusal of a row where Kafka answers −1.
    pub(crate) fn leak(&self, row: Difference, reason: Reason) -> Box<Refusal> {
        Refusal::leak(self.request.profile, row, reason)
    }

    /// What is known of a payload that is too large, so that it is not inflated again to find out: the
    /// proof refused it with the bounds that are in force here.
    pub(crate) fn known_refusal(&self, reading: Reading, payload: &[u8]) -> Option<ErrorKind> {
        let limit = self.limits.decompressed(payload.len());
        let is_inflated = reading != (Reading::Records { count: 0 });
        let kind = ErrorKind::DecompressedTooLarge { limit };
        (is_inflated && self.refused == Some(kind)).then_some(kind)
    }

    /// The lengths that a record of a compressed batch or set may declare, where the release has
    /// bounds. Strict names negative ones itself, and goes on behind them.
    pub(crate) fn record_lengths(&self) -> Option<RangeInclusive<i32>> {
        if !self.request.kafka_version.has(ReleaseDifference::RecordBounds) {
            return None;
        }
        let minimum = if self.is_strict(Difference::RecordLengths) { i32::MIN } else { 0 };
        Some(minimum..=self.config.max_decompressed_message_bytes)
    }

    /// Refuses a payload that stops some clients if it is kept.
    pub(crate) fn judge_framing(&self, fault: Option<ClientFault>) -> Decision<()> {
        match fault {
            Some(fault) if self.is_strict(Difference::ClientFraming) && !self.is_rebuilt => {
                Err(Refusal::invalid(Reason::Clients(fault)))
            }
            _ => Ok(()),
        }
    }

    /// Whether no record is to blame so far.
    pub(crate) fn is_clean(&self) -> bool {
        self.errors.is_empty()
    }

    pub(crate) fn blame(&mut self, batch_index: u32, error: ErrorCode, reason: Reason) {
        self.errors.push(RecordError { batch_index, error, reason }, &self.limits);
    }

    /// Goes on after a refusal that names its record, to judge the others.
    pub(crate) fn resume_after(&mut self, refusal: Refusal) {
        self.errors = RecordErrors::of(refusal);
    }

    /// The refusal of a batch of magic 2 that cannot be read; `index` blames a record.
    pub(crate) fn unreadable_batch(
        &mut self,
        kind: ErrorKind,
        is_plain: bool,
        index: Option<u32>,
    ) -> Box<Refusal> {
        let row = match kind {
            ErrorKind::VarintTooLong { field: Field::RecordLength, .. } if is_plain => {
                Some(Difference::LengthVarint)
            }
            ErrorKind::Undecodable { .. } => Some(Difference::Undecodable),
            ErrorKind::UnknownCodec { .. } => Some(Difference::UnknownCodec),
            _ => None,
        };
        self.unreadable(row, kind, index)
    }

    /// The refusal of a set of magic 0 or 1 that cannot be read; `index` blames a record.
    pub(crate) fn unreadable_legacy(
        &mut self,
        kind: ErrorKind,
        index: Option<u32>,
    ) -> Box<Refusal> {
        let row = match kind {
            ErrorKind::LegacyOverrun { .. } | ErrorKind::LegacyTooShort { .. } => {
                Some(Difference::LegacyLengths)
            }
            ErrorKind::Undecodable { .. } => Some(Difference::Undecodable),
            ErrorKind::SizeTooSmall { .. } => return Refusal::corrupt(kind),
            _ => None,
        };
        self.unreadable(row, kind, index)
    }

    fn unreadable(
        &mut self,
        row: Option<Difference>,
        kind: ErrorKind,
        index: Option<u32>,
    ) -> Box<Refusal> {
        let reason = Reason::Format(kind);
        let refusal = match row {
            Some(row) => self.leak(row, reason),
            None => Refusal::invalid(reason),
        };
        if !self.is_strict(Difference::StructureUnnamed) {
            return refusal;
        }
        if let Some(index) = index {
            self.blame(index, refusal.error, reason);
        }
        if self.is_clean() { refusal } else { Refusal::records(std::mem::take(&mut self.errors)) }
    }

    /// At the end of an entry of magic 0 or 1, which to Kafka is a batch: Kafka refuses what it has
    /// found there; strict goes on to the end of the set.
    pub(crate) fn end_of_entry(&mut self) -> Decision<()> {
        if self.is_strict(Difference::LegacyPositions) {
            return Ok(());
        }
        self.end_of_set()
    }

    /// Refuses the set if a record is to blame.
    pub(crate) fn end_of_set(&mut self) -> Decision<()> {
        if self.is_clean() {
            return Ok(());
        }
        Err(Refusal::records(std::mem::take(&mut self.errors)))
    }
}
