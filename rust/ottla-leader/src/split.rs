//! A record set taken apart: which of its records are good, which are to blame, and which bytes are
//! refused whole.

use crate::config::TopicConfig;
use crate::reason::Reason;
use crate::refusal::{RecordError, Refusal};
use crate::request::Request;
use crate::validate::validate;
use crate::validator::Validator;
use ottla_format::batch::{self, BatchInfo, Payload, RecordCursor};
use ottla_format::batches::Batches;
use ottla_format::check::{Checker, Level};
use ottla_format::error::Error;
use ottla_format::limits::Limits;
use ottla_kernels::{BatchHeader, Nothing};
use ottla_log::producers::Origin;

/// A part of a record set: a batch, or bytes that are none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetPart {
    /// Where it begins, in bytes of the set.
    pub position: usize,
    /// Its bytes.
    pub size: usize,
    /// What becomes of it.
    pub verdict: PartVerdict,
}

/// What becomes of a part of a record set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartVerdict {
    /// A batch of which every record is good, and can be read.
    Accepted(BatchInfo),
    /// A batch of which these records are refused; the others are good, and all can be read.
    RecordsRefused(BatchInfo, Vec<RecordError>),
    /// Refused whole.
    Refused(PartRefusal),
}

/// Why a part of a record set is refused whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartRefusal {
    /// Kafka's error code; `None` for a batch that is only incomplete.
    pub error: Option<i16>,
    /// Kafka's name of the error, or the kind of fault where the bytes cannot be read.
    pub reason: &'static str,
    /// What was found and expected.
    pub message: String,
    /// The first record to blame, where one is.
    pub record_index: Option<u32>,
}

/// Takes a record set apart. The parts follow one another, and together are the set.
///
/// Of several batches each is judged alone, where the request may carry several. What a leader
/// sends to its followers is held to the rules of the format besides, as they and careful consumers
/// do.
pub fn validate_each(
    records: &[u8],
    config: &TopicConfig,
    request: &Request,
    validator: &mut Validator,
    checker: &mut Checker,
) -> Vec<SetPart> {
    let refusal = validate(records, config, request, validator).outcome.err();
    let (batches, fault) = framed(records);
    let end = batches.iter().map(|(_, batch)| batch.len()).sum();
    let mut splitter = Splitter { config, request, validator, checker };
    let mut parts: Vec<_> = match &refusal {
        None => batches.iter().map(|batch| splitter.accepted(batch)).collect(),
        Some(_) if request.allows_several_batches() => {
            batches.iter().map(|batch| splitter.alone(batch)).collect()
        }
        Some(refusal) => match &batches[..] {
            [batch] if !refusal.record_errors.is_empty() => vec![splitter.blamed(batch, refusal)],
            _ => Vec::new(),
        },
    };
    let is_good = |part: &SetPart| matches!(part.verdict, PartVerdict::Accepted(_));
    if let Some(refusal) = refusal
        && (parts.is_empty() || end == records.len() && parts.iter().all(is_good))
    {
        // Nothing is wrong with any of the batches but the company of the others.
        let verdict = PartVerdict::Refused(PartRefusal::of(&refusal, None));
        return vec![SetPart { position: 0, size: records.len(), verdict }];
    }
    if end < records.len() {
        let refusal = fault.as_ref().map_or_else(PartRefusal::incomplete, PartRefusal::of_fault);
        let (size, verdict) = (records.len().saturating_sub(end), PartVerdict::Refused(refusal));
        parts.push(SetPart { position: end, size, verdict });
    }
    parts
}

/// The batch of a set that is one batch, whose records are all good, and these, inflated. The kernels
/// find it out: `None` leaves the set to [`validate_each`].
pub fn only_batch<'v>(
    records: &'v [u8],
    config: &TopicConfig,
    request: &Request,
    validator: &'v mut Validator,
) -> Option<(BatchInfo, &'v [u8])> {
    let (header, payload) = validator.prove(records, config, request)?;
    may_be_walked(payload).then(|| (BatchInfo::from_kernel(&header, 0), payload))
}

/// Whether no record of a payload has more headers than it may. A header has two bytes at least.
fn may_be_walked(payload: &[u8]) -> bool {
    payload.len() / 2 <= Limits::default().headers as usize
}

/// A batch and its bytes.
type Framed<'s> = (BatchInfo, &'s [u8]);

/// The batches whose framing is right, one behind the other, and the fault that ends them.
fn framed(records: &[u8]) -> (Vec<Framed<'_>>, Option<Error>) {
    let mut batches = Vec::new();
    let mut rest = records;
    for info in Batches::new(records, 0) {
        match info.map(|info| (info, rest.split_off(..info.size as usize))) {
            Ok((info, Some(batch))) => batches.push((info, batch)),
            Ok((_, None)) => break,
            Err(error) => return (batches, Some(error)),
        }
    }
    (batches, None)
}

struct Splitter<'s> {
    config: &'s TopicConfig,
    request: &'s Request,
    validator: &'s mut Validator,
    checker: &'s mut Checker,
}

impl Splitter<'_> {
    /// A batch, judged as a set of its own.
    fn alone(&mut self, framed: &Framed<'_>) -> SetPart {
        match validate(framed.1, self.config, self.request, self.validator).outcome {
            Ok(_) => self.accepted(framed),
            Err(refusal) => self.blamed(framed, &refusal),
        }
    }

    /// A batch that is accepted, if its records can be read.
    fn accepted(&mut self, framed: &Framed<'_>) -> SetPart {
        let read = match self.request.origin {
            Origin::Replication => self.check_rules(framed),
            Origin::Client | Origin::Coordinator => self.count_records(framed).map(|_| ()),
        };
        let verdict = match read {
            Ok(()) => PartVerdict::Accepted(framed.0),
            Err(fault) => {
                let fault = fault.within(framed.0.position as usize);
                let record_index = fault.kind.record_index();
                PartVerdict::Refused(PartRefusal { record_index, ..PartRefusal::of_fault(&fault) })
            }
        };
        part(framed, verdict)
    }

    /// A batch that is refused: its records, if all these are named and the others can be read.
    fn blamed(&mut self, framed: &Framed<'_>, refusal: &Refusal) -> SetPart {
        let errors = &refusal.record_errors;
        let all_are_named = refusal.reason == Reason::Records { count: errors.len() };
        let records = if all_are_named { self.count_records(framed).unwrap_or(0) } else { 0 };
        let all_are_read =
            errors.last().is_some_and(|error| u64::from(error.batch_index) < records);
        let verdict = if all_are_read {
            PartVerdict::RecordsRefused(framed.0, errors.clone())
        } else {
            let first = errors.first().map(|error| error.batch_index);
            PartVerdict::Refused(PartRefusal::of(refusal, first))
        };
        part(framed, verdict)
    }

    /// Holds a batch to every rule of the format.
    fn check_rules(&mut self, (_, batch): &Framed<'_>) -> Result<(), Error> {
        self.checker.set_level(Level::Full);
        self.checker.check_all(batch).map(|_| ())
    }

    /// Reads the records of a batch as a consumer does: how many they are, or the first fault.
    fn count_records(&mut self, (info, batch): &Framed<'_>) -> Result<u64, Error> {
        batch::verify(batch)?;
        let (kernels, limits) = (self.validator.kernels(), Limits::default());
        let payload = match batch::payload(info, batch)? {
            // A batch that ends before its records has none.
            Payload::Plain { bytes, .. } => bytes,
            Payload::Compressed { codec, reading, bytes, start } => self
                .validator
                .codecs()
                .decompress(codec, reading, bytes)
                .map_err(|kind| Error::new(kind, start))?,
        };
        if let Some(header) = BatchHeader::parse(batch, 0).filter(|header| {
            may_be_walked(payload)
                && !info.is_control()
                && header.last_offset_delta.checked_add(1) == Some(header.record_count)
        }) && ottla_kernels::walk_payload(kernels, payload, &header, &mut Nothing)
        {
            return Ok(u64::from(header.record_count as u32));
        }
        let mut cursor = RecordCursor::start(info, payload, limits)?;
        let mut records = 0u64;
        while cursor.next(payload)?.is_some() {
            records = records.saturating_add(1);
        }
        Ok(records)
    }
}

fn part((info, batch): &Framed<'_>, verdict: PartVerdict) -> SetPart {
    SetPart { position: info.position as usize, size: batch.len(), verdict }
}

impl PartRefusal {
    fn of(refusal: &Refusal, record_index: Option<u32>) -> Self {
        Self {
            error: Some(refusal.error.code()),
            reason: refusal.error.name(),
            message: refusal.message(),
            record_index,
        }
    }

    fn of_fault(fault: &Error) -> Self {
        Self {
            error: Some(fault.kind.error_code()),
            reason: fault.kind.name(),
            message: fault.to_string(),
            record_index: None,
        }
    }

    fn incomplete() -> Self {
        Self {
            error: None,
            reason: "truncated-batch",
            message: "the record set ends inside a batch".to_owned(),
            record_index: None,
        }
    }
}
