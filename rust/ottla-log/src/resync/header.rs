//! Headers that obey every rule of a batch, and bytes that can be the beginning of one.

use ottla_format::header::{
    Envelope, HEADER_UP_TO_MAGIC, Header, LOG_OVERHEAD, MIN_SIZE_V2, RECORD_BATCH_OVERHEAD, field,
    read_i32, read_i64,
};
use ottla_format::legacy;
use ottla_format::record::MIN_RECORD_BYTES;

/// Bytes of a candidate that are judged: enough for a header and the lengths of a legacy record with
/// a usual key.
pub const LOOK_BYTES: usize = 16 << 10;

/// What a batch behind damage must fit into.
#[derive(Clone, Copy, Debug)]
pub struct HeaderBounds {
    /// First offset behind those seen so far.
    pub lowest: i64,
    /// Last offset that the segment may hold.
    pub highest: i64,
    /// Bytes of the largest batch.
    pub batch_bytes: u64,
    /// Whether magic 0 and 1 may come.
    pub allows_legacy: bool,
}

impl HeaderBounds {
    /// The bounds of a batch behind one with these.
    #[must_use]
    pub fn behind(&self, header: &PlausibleHeader) -> Self {
        Self { lowest: header.next_offset(), ..*self }
    }
}

/// A header that obeys every rule.
#[derive(Clone, Copy, Debug)]
pub struct PlausibleHeader {
    /// Bytes of the batch.
    pub total: u64,
    /// Base offset; of a legacy wrapper, whose header does not have it, the last offset.
    pub base_offset: i64,
    /// Last offset.
    pub last_offset: i64,
    /// Whether the record count confirms the last offset.
    pub is_dense: bool,
}

impl PlausibleHeader {
    /// Reads a header at the start of `data`, if it obeys every rule. No more than the first
    /// [`LOOK_BYTES`] count, however many there are.
    pub fn read(data: &[u8], bounds: &HeaderBounds) -> Option<Self> {
        let data = data.get(..LOOK_BYTES).unwrap_or(data);
        match magic_of(data)? {
            2 => Self::of_v2(&Header::read(data, 0)?, bounds),
            0 | 1 if bounds.allows_legacy => Self::read_legacy(data, bounds),
            _ => None,
        }
    }

    /// The rules of a magic 2 header, its magic aside. Stricter than Kafka; every batch that Kafka
    /// writes obeys them.
    pub fn of_v2(header: &Header, bounds: &HeaderBounds) -> Option<Self> {
        let total = u64::try_from(header.batch_length).ok()?.checked_add(LOG_OVERHEAD as u64)?;
        let delta = header.last_offset_delta;
        let last_offset = header.base_offset.checked_add(i64::from(delta))?;
        let room = total.checked_sub(RECORD_BATCH_OVERHEAD as u64)?;
        let count = u64::try_from(header.record_count).ok()?;
        let offsets = u64::from(delta as u32).saturating_add(1);
        let is_idempotent = header.producer_id >= 0
            && header.producer_epoch >= 0
            && (header.base_sequence >= 0 || header.base_sequence == -1);
        let is_anonymous =
            header.producer_id == -1 && header.producer_epoch == -1 && !header.is_transactional();
        let fits = header.batch_length >= MIN_SIZE_V2
            && total <= bounds.batch_bytes
            && header.attributes & !0x7f == 0
            && header.codec() <= 4
            && delta >= 0
            && header.base_offset >= bounds.lowest
            && last_offset <= bounds.highest
            && count <= offsets
            && (header.codec() != 0 || count.saturating_mul(MIN_RECORD_BYTES as u64) <= room)
            && (is_idempotent || is_anonymous)
            && header.partition_leader_epoch >= -1;
        let (base_offset, is_dense) = (header.base_offset, count == offsets);
        fits.then_some(Self { total, base_offset, last_offset, is_dense })
    }

    /// The rules of a legacy message: its key and value fill it exactly.
    fn read_legacy(data: &[u8], bounds: &HeaderBounds) -> Option<Self> {
        let envelope = Envelope::read(data, 0)?;
        let total = u64::try_from(envelope.size).ok()?.checked_add(LOG_OVERHEAD as u64)?;
        let key_at = LOG_OVERHEAD.checked_add(legacy::key_position(envelope.magic))?;
        let key = read_i32(data, key_at)?;
        let value_at = key_at.checked_add(4)?.checked_add(usize::try_from(key.max(0)).ok()?)?;
        let value = read_i32(data, value_at)?;
        let value_start = (value_at as u64).checked_add(4)?;
        let used = value_start.checked_add(u64::try_from(value.max(0)).ok()?)?;
        let attributes = *data.get(HEADER_UP_TO_MAGIC)?;
        let known_bits = if envelope.magic == 0 { 0x07 } else { 0x0f };
        let fits = envelope.size >= legacy::MIN_BODY_BYTES as i32
            && total <= bounds.batch_bytes
            && used == total
            && key >= -1
            && value >= -1
            && attributes & !known_bits == 0
            && attributes & 7 <= 3
            && envelope.offset >= bounds.lowest
            && envelope.offset <= bounds.highest;
        let (base_offset, last_offset) = (envelope.offset, envelope.offset);
        fits.then_some(Self { total, base_offset, last_offset, is_dense: false })
    }

    /// The next such header that begins in the first `places` bytes of `data`, and where.
    pub fn find(data: &[u8], places: usize, bounds: &HeaderBounds) -> Option<(usize, Self)> {
        let limit = bounds.batch_bytes.min(i32::MAX as u64) as u32;
        for at in 0..places {
            let rest = data.get(at..)?;
            let head = rest.first_chunk::<HEADER_UP_TO_MAGIC>()?;
            // The cheap part first: most places fail here.
            if head[field::MAGIC] <= 2 {
                let size = u32::from_be_bytes([head[8], head[9], head[10], head[11]]);
                if size >= legacy::MIN_BODY_BYTES as u32
                    && size <= limit
                    && let Some(found) = Self::read(rest, bounds)
                {
                    return Some((at, found));
                }
            }
        }
        None
    }

    /// The offset behind the last one.
    pub fn next_offset(&self) -> i64 {
        self.last_offset.saturating_add(1)
    }

    /// Base offset and last offset.
    pub fn offsets(&self) -> (i64, i64) {
        (self.base_offset, self.last_offset)
    }
}

/// The magic byte of a header.
pub fn magic_of(data: &[u8]) -> Option<u8> {
    data.get(field::MAGIC).copied()
}

/// Whether bytes at the end of a source, fewer than a header, can be the beginning of a batch.
pub fn is_beginning(head: &[u8], bounds: &HeaderBounds) -> bool {
    let offset = read_i64(head, field::BASE_OFFSET);
    let size = read_i32(head, field::BATCH_LENGTH);
    let minimum = if bounds.allows_legacy { legacy::MIN_BODY_BYTES as i32 } else { MIN_SIZE_V2 };
    let maximum = bounds.batch_bytes.saturating_sub(LOG_OVERHEAD as u64);
    offset.is_none_or(|offset| (bounds.lowest..=bounds.highest).contains(&offset))
        && size.is_none_or(|size| size >= minimum && size as u64 <= maximum)
        && magic_of(head).is_none_or(|magic| magic == 2 || (magic < 2 && bounds.allows_legacy))
}
