//! Logs of every shape of batch, made by hand.

// Each test file uses some of it.
#![allow(dead_code)]

use ottla_audit::SegmentContext;
use ottla_format::attributes::Compression;
use ottla_format::builder::{
    BatchFields, LegacyFields, NewControlRecord, NewRecord, build_batch, build_control_batch,
    build_legacy,
};
use ottla_format::compression::Codecs;
use ottla_format::limits::Limits;

pub(crate) const TIME: i64 = 1_700_000_000_000;
pub(crate) const NOW: i64 = TIME + 86_400_000;

/// A reproducible stream of numbers (`SplitMix64`).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    pub(crate) fn bytes(&mut self, size: usize) -> Vec<u8> {
        (0..size).map(|_| self.next() as u8).collect()
    }
}

/// A log under construction.
pub(crate) struct Log {
    pub(crate) bytes: Vec<u8>,
    /// Position, size and first offset of each batch.
    pub(crate) batches: Vec<(usize, usize, i64)>,
    pub(crate) next: i64,
    pub(crate) epoch: i32,
    pub(crate) codecs: Codecs,
}

impl Log {
    pub(crate) fn at(base_offset: i64) -> Self {
        let codecs = Codecs::new(Limits::default());
        Self { bytes: Vec::new(), batches: Vec::new(), next: base_offset, epoch: 0, codecs }
    }

    pub(crate) fn raw(&mut self, batch: &[u8], count: i64) -> &mut Self {
        self.batches.push((self.bytes.len(), batch.len(), self.next));
        self.bytes.extend_from_slice(batch);
        self.next += count;
        self
    }

    pub(crate) fn fields(&self) -> BatchFields {
        BatchFields {
            base_offset: self.next,
            partition_leader_epoch: self.epoch,
            ..BatchFields::default()
        }
    }

    pub(crate) fn with(&mut self, fields: BatchFields, values: &[&[u8]]) -> &mut Self {
        let timestamp = TIME + self.next;
        let records: Vec<NewRecord<'_>> = values
            .iter()
            .map(|value| NewRecord { timestamp, value: Some(value), ..NewRecord::default() })
            .collect();
        let batch = build_batch(&fields, &records, &mut self.codecs).expect("builds");
        self.raw(&batch, values.len() as i64)
    }

    pub(crate) fn plain(&mut self, values: &[&[u8]]) -> &mut Self {
        self.with(self.fields(), values)
    }

    pub(crate) fn compressed(&mut self, compression: Compression, values: &[&[u8]]) -> &mut Self {
        self.with(BatchFields { compression, ..self.fields() }, values)
    }

    /// A batch of producer 9.
    pub(crate) fn produced(
        &mut self,
        base_sequence: i32,
        is_transactional: bool,
        count: usize,
    ) -> &mut Self {
        let fields = BatchFields {
            producer_id: 9,
            producer_epoch: 0,
            base_sequence,
            is_transactional,
            ..self.fields()
        };
        self.with(fields, &vec![b"value".as_slice(); count])
    }

    pub(crate) fn marker(&mut self, record: NewControlRecord<'_>) -> &mut Self {
        self.marker_of(9, 0, record)
    }

    pub(crate) fn marker_of(
        &mut self,
        producer_id: i64,
        producer_epoch: i16,
        record: NewControlRecord<'_>,
    ) -> &mut Self {
        let fields = BatchFields { producer_id, producer_epoch, ..self.fields() };
        let batch = build_control_batch(&fields, TIME + self.next, record, &mut self.codecs);
        self.raw(&batch.expect("builds"), 1)
    }

    pub(crate) fn legacy(
        &mut self,
        magic: i8,
        compression: Compression,
        values: &[&[u8]],
    ) -> &mut Self {
        let fields = LegacyFields {
            magic,
            base_offset: self.next,
            log_append_time_ms: None,
            compression,
            compression_level: None,
        };
        let records: Vec<NewRecord<'_>> = values
            .iter()
            .map(|value| NewRecord { timestamp: TIME, value: Some(value), ..NewRecord::default() })
            .collect();
        let set = build_legacy(&fields, &records, &mut self.codecs).expect("builds");
        self.raw(&set, values.len() as i64)
    }

    pub(crate) fn batch(&self, index: usize) -> &[u8] {
        let (position, size, _) = self.batches[index];
        &self.bytes[position..position + size]
    }
}

pub(crate) fn active(base_offset: i64) -> SegmentContext {
    SegmentContext {
        base_offset: Some(base_offset),
        is_active: true,
        now_ms: NOW,
        ..SegmentContext::default()
    }
}

pub(crate) fn closed(base_offset: i64, next_base_offset: i64) -> SegmentContext {
    let next_base_offset = Some(next_base_offset);
    SegmentContext { next_base_offset, is_active: false, ..active(base_offset) }
}
