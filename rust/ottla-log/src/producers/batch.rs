//! A batch with a producer id, as the rules of producers see it.

use ottla_format::batch::{BatchInfo, Payload, RecordCursor, payload};
use ottla_format::compression::Codecs;
use ottla_format::control_record::ControlRecord;
use ottla_format::error::{Error, ErrorKind};
use ottla_format::limits::Limits;

/// A batch with a producer id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // Kafka's own names
pub struct ProducerBatch {
    pub base_offset: i64,
    pub last_offset: i64,
    pub producer_id: i64,
    pub producer_epoch: i16,
    pub base_sequence: i32,
    pub last_sequence: i32,
    pub max_timestamp: i64,
    pub is_transactional: bool,
    pub content: Content,
}

/// What a batch with a producer id holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Records.
    Data,
    /// The end marker of a transaction.
    Marker {
        /// Committed, or aborted.
        is_commit: bool,
        /// Epoch of the coordinator that wrote it.
        coordinator_epoch: i32,
        /// Timestamp of the record.
        timestamp: i64,
    },
    /// A control batch that the cleaner has emptied.
    EmptyControl,
}

impl ProducerBatch {
    /// The batch that `info` describes and `data` holds; `None` if it has no producer id. Only the
    /// payload of a marker is read.
    ///
    /// # Errors
    /// What keeps a marker from being read, with [`ErrorKind::ControlBatch`] for a control record
    /// that ends no transaction.
    pub fn read(data: &[u8], info: &BatchInfo, codecs: &mut Codecs) -> Result<Option<Self>, Error> {
        if !info.has_producer_id() {
            return Ok(None);
        }
        let content = if info.is_control() {
            let start = usize::try_from(info.position).unwrap_or(usize::MAX);
            let rest = data.get(start..).unwrap_or(&[]);
            let whole = usize::try_from(info.size).ok().and_then(|size| rest.get(..size));
            let left = rest.len() as u64;
            let cut = ErrorKind::TruncatedBatch { needed: info.size, left };
            let content = whole
                .ok_or_else(|| Error::new(cut, 0))
                .and_then(|whole| marker(whole, info, codecs));
            content.map_err(|error| error.within(start))?
        } else {
            Content::Data
        };
        Ok(Some(Self::with(info, content)))
    }

    /// A batch of records with a producer id.
    #[inline]
    pub fn of_records(info: &BatchInfo) -> Self {
        Self::with(info, Content::Data)
    }

    #[inline]
    fn with(info: &BatchInfo, content: Content) -> Self {
        Self {
            base_offset: info.base_offset,
            last_offset: info.last_offset,
            producer_id: info.producer_id,
            producer_epoch: info.producer_epoch,
            base_sequence: info.base_sequence,
            last_sequence: info.last_sequence(),
            max_timestamp: info.max_timestamp,
            is_transactional: info.is_transactional(),
            content,
        }
    }
}

fn marker(whole: &[u8], info: &BatchInfo, codecs: &mut Codecs) -> Result<Content, Error> {
    let Some((control, timestamp)) = control_record(whole, info, codecs)? else {
        return Ok(Content::EmptyControl);
    };
    let (is_commit, coordinator_epoch) = match control {
        ControlRecord::Abort { coordinator_epoch } => (false, coordinator_epoch),
        ControlRecord::Commit { coordinator_epoch } => (true, coordinator_epoch),
        _ => {
            let count = info.record_count.unwrap_or(0);
            return Err(Error::new(ErrorKind::ControlBatch { count }, 0));
        }
    };
    Ok(Content::Marker { is_commit, coordinator_epoch, timestamp })
}

/// The first record of one whole control batch, with its timestamp; `None` where the cleaner has
/// emptied it.
///
/// # Errors
/// What keeps it from being read.
pub fn control_record(
    whole: &[u8],
    info: &BatchInfo,
    codecs: &mut Codecs,
) -> Result<Option<(ControlRecord, i64)>, Error> {
    if info.record_count == Some(0) {
        return Ok(None);
    }
    let records = match payload(info, whole)? {
        Payload::Plain { bytes, .. } => bytes,
        Payload::Compressed { codec, reading, bytes, start } => {
            codecs.decompress(codec, reading, bytes).map_err(|kind| Error::new(kind, start))?
        }
    };
    let mut cursor = RecordCursor::start(info, records, Limits::default())?;
    let Some(record) = cursor.next(records)? else { return Ok(None) };
    if info.record_count == Some(1) {
        // Nothing may follow the last record.
        cursor.next(records)?;
    }
    let control = ControlRecord::read(0, record.key, record.value);
    let control = control.map_err(|kind| Error::new(kind, 0))?;
    Ok(Some((control, record.timestamp)))
}
