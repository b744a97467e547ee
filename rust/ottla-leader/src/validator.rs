//! The verdict on bytes alone: every check of a leader, in Kafka's order
//! (docs/kafka/produce-validation.md §1).
//!
//! ```text
//! gate ─▸ analysis ─▸ record set ─▸ sizes
//!                      ├ kept as it is, with a new header
//!                      └ written anew: another codec or format, or offsets to put in order
//! ```
//!
//! A [`proof`](crate::proof) spares nearly every set these stages.

use crate::analysis::{Analysis, analyze};
use crate::config::TopicConfig;
use crate::gate;
use crate::metrics::{Metrics, count};
use crate::profiles::{Difference, Profile};
use crate::proof::Prover;
use crate::reason::Reason;
use crate::record_set::judge_set;
use crate::refusal::{Decision, Refusal};
use crate::request::Request;
use crate::stored::Stored;
use crate::validation::Validation;
use crate::verdict::{Accepted, Verdict};
use ottla_format::batches::Batches;
use ottla_format::compression::Codecs;
use ottla_format::error::ErrorKind;
use ottla_format::error_code::ErrorCode;
use ottla_format::limits::Limits;
use ottla_kernels::{BatchHeader, Level};
use ottla_log::producers::Origin;

/// Decides over record sets; holds the contexts and the arena of the codecs. One per thread.
pub struct Validator {
    codecs: Codecs,
    kernels: Level,
    limits: Limits,
}

impl Default for Validator {
    fn default() -> Self {
        Self::new(Limits::default(), Level::best())
    }
}

impl Validator {
    /// A validator with its own bounds and kernels.
    pub fn new(limits: Limits, kernels: Level) -> Self {
        Self { codecs: Codecs::new(limits), kernels, limits }
    }

    /// The codecs, for other uses on the same thread.
    pub fn codecs(&mut self) -> &mut Codecs {
        &mut self.codecs
    }

    /// The kernels that it uses.
    pub(crate) fn kernels(&self) -> Level {
        self.kernels
    }

    /// Decides over the bytes; what the partition knows of producers comes after it.
    pub fn validate<'a>(
        &mut self,
        records: &'a [u8],
        config: &TopicConfig,
        request: &Request,
    ) -> Verdict<'a> {
        match self.accept(records, config, request) {
            Ok(accepted) => Verdict::accepted(accepted, records.len(), request),
            Err(refused) => self.validate_by_stages(records, config, request, refused),
        }
    }

    /// Accepts a set that is proved: one batch of records.
    ///
    /// # Errors
    /// Of one that is not, what the proof has found of its payload.
    #[inline(always)]
    pub(crate) fn accept<'a>(
        &mut self,
        records: &'a [u8],
        config: &TopicConfig,
        request: &Request,
    ) -> Result<Accepted<'a>, Option<ErrorKind>> {
        let header = BatchHeader::parse(records, 0).ok_or(None)?;
        let mut prover = self.prover(config, request);
        match prover.prove(records, &header, config, request) {
            Some(proof) => Ok(proof.accepted(records, &header, config, request)),
            None => Err(prover.refused),
        }
    }

    /// Decides over a set that is not proved, of which that has found `refused`.
    #[inline(never)]
    pub(crate) fn validate_by_stages<'a>(
        &mut self,
        records: &'a [u8],
        config: &TopicConfig,
        request: &Request,
        refused: Option<ErrorKind>,
    ) -> Verdict<'a> {
        let set_bytes = records.len();
        let mut metrics = Metrics::default();
        self.codecs.set_limits(self.limits_of(request.profile));
        let outcome = self.judge(records, config, request, refused, &mut metrics);
        self.codecs.set_limits(self.limits);
        match outcome {
            Ok(accepted) => Verdict::accepted(accepted, set_bytes, request),
            Err(refusal) => Verdict::refused(refusal, set_bytes, request, metrics),
        }
    }

    /// The records, inflated, of a set that is one ordinary batch and is accepted at a glance;
    /// `None` says nothing about the set.
    pub(crate) fn prove<'v>(
        &'v mut self,
        records: &'v [u8],
        config: &TopicConfig,
        request: &Request,
    ) -> Option<(BatchHeader, &'v [u8])> {
        let header = BatchHeader::parse(records, 0)?;
        self.prover(config, request).prove(records, &header, config, request)?;
        let payload = match header.codec() {
            0 => records.get(header.records_position()..header.end)?,
            _ => self.codecs.inflated(),
        };
        Some((header, payload))
    }

    #[inline]
    fn prover(&mut self, config: &TopicConfig, request: &Request) -> Prover<'_> {
        let max_headers = self.limits.headers as usize;
        let max_inflated = config.max_decompressed_message_bytes.unsigned_abs() as usize;
        Prover {
            codecs: &mut self.codecs,
            kernels: self.kernels,
            max_headers,
            max_inflated,
            judges_framing: request.is_strict(Difference::ClientFraming),
            refused: None,
        }
    }

    /// Kafka has no bounds of its own; what protects this engine's memory stays.
    fn limits_of(&self, profile: Profile) -> Limits {
        let mut limits = self.limits;
        if !profile.is_strict(Difference::Bomb) {
            limits.decompressed_ratio = u64::MAX;
        }
        if !profile.is_strict(Difference::HeaderCount) {
            limits.headers = u32::MAX;
        }
        limits
    }

    /// The stages, one after the other.
    fn judge<'a>(
        &mut self,
        records: &'a [u8],
        config: &TopicConfig,
        request: &Request,
        refused: Option<ErrorKind>,
        metrics: &mut Metrics,
    ) -> Decision<Accepted<'a>> {
        if let Some(api_version) = request.api_version {
            gate::check(records, request, api_version)?;
        }
        let analysis = analyze(records, config, request, metrics)?;
        if analysis.batches.is_empty() {
            return Ok(Accepted::nothing());
        }
        let accepted = if request.origin == Origin::Replication {
            replicated(&analysis, request)?
        } else {
            let limits = self.limits_of(request.profile);
            let mut validation = Validation::new(config, request, metrics, limits);
            validation.refused = refused;
            judge_set(&mut validation, analysis.batches, analysis.source, &mut self.codecs)?
        };
        judge_sizes(&accepted, records.len(), config, request, metrics)?;
        Ok(accepted)
    }
}

/// What a follower appends as it is.
fn replicated<'a>(analysis: &Analysis<'a>, request: &Request) -> Decision<Accepted<'a>> {
    if analysis.first_offset < request.base_offset {
        let (offset, log_end_offset) = (analysis.first_offset, request.base_offset);
        let reason = Reason::OffsetBelowEnd { offset, log_end_offset };
        return Err(Refusal::leak(request.profile, Difference::ReplicaOffsets, reason));
    }
    let (max_timestamp_ms, offset_of_max_timestamp) = analysis.max_timestamp;
    Ok(Accepted {
        base_offset: analysis.first_offset,
        last_offset: analysis.last_offset,
        max_timestamp_ms,
        offset_of_max_timestamp,
        stored: Stored::AsReceived(analysis.batches),
        ..Accepted::nothing()
    })
}

/// What the stored bytes must keep (docs/kafka/produce-validation.md §7).
fn judge_sizes(
    accepted: &Accepted<'_>,
    set_bytes: usize,
    config: &TopicConfig,
    request: &Request,
    metrics: &mut Metrics,
) -> Decision<()> {
    if let (true, Stored::Owned(bytes)) = (accepted.is_rebuilt, &accepted.stored) {
        let limit = config.max_message_bytes;
        for batch in Batches::new(bytes, 0).flatten() {
            if batch.size > u64::from(limit.unsigned_abs()) {
                count(&mut metrics.bytes_rejected, set_bytes as u64);
                let reason = Reason::RebuiltBatchTooLarge { size: batch.size, limit };
                return Err(Refusal::new(ErrorCode::MessageTooLarge, reason));
            }
        }
    }
    if let Some(header) = accepted.stored.header().filter(|header| header.base_offset < 0) {
        let reason = Reason::OffsetNegative { base_offset: header.base_offset };
        return Err(Refusal::leak(request.profile, Difference::NegativeOffset, reason));
    }
    let Accepted { base_offset, last_offset, .. } = *accepted;
    // The last offset of no records is the one before the base offset.
    let is_assigned = request.origin != Origin::Replication;
    if is_assigned
        && request.is_strict(Difference::OffsetOverflow)
        && last_offset < base_offset.saturating_sub(1)
    {
        return Err(Refusal::invalid(Reason::OffsetOverflow { base_offset }));
    }
    let (size, limit) = (accepted.stored.len() as u64, config.segment_bytes);
    if size > u64::from(limit.unsigned_abs()) {
        let reason = Reason::SetTooLarge { size, limit };
        return Err(Refusal::new(ErrorCode::RecordListTooLarge, reason));
    }
    Ok(())
}
