//! The records of a partition, one by one, without a report of what was passed over.

use super::readable_batch::{ReadableBatch, RecordPlace};
use super::reader::{PartitionReader, ReadStep};
use super::whole_batch::read_batch;
use crate::segment::scanner::Scanner;
use ottla_format::batch::{self, Payload, Record, RecordCursor};
use ottla_log::source::Source;
use std::io;

impl PartitionReader {
    /// Takes one step, and calls `on_record` with the records of its batch. Returns whether there is
    /// more. What cannot be read is passed over without a report.
    ///
    /// # Errors
    /// What ended reading.
    pub fn visit(
        &mut self,
        scanner: &mut Scanner,
        source: &dyn Source,
        on_record: &mut dyn FnMut(&Record<'_>),
    ) -> io::Result<bool> {
        let batch = match self.step(scanner, source)? {
            ReadStep::Batch(batch) => batch,
            ReadStep::Damage(_) | ReadStep::Busy => return Ok(true),
            ReadStep::End => return Ok(false),
        };
        if let Some(whole) = read_batch(scanner, source, &batch.info)? {
            visit_batch(scanner, &batch, &whole, on_record);
        }
        Ok(true)
    }
}

/// Calls `on_record` with the records of a batch, up to the first that cannot be read.
fn visit_batch(
    scanner: &mut Scanner,
    batch: &ReadableBatch,
    whole: &[u8],
    on_record: &mut dyn FnMut(&Record<'_>),
) {
    let checker = scanner.checker();
    let limits = *checker.limits();
    let records = match batch::payload(&batch.info, whole) {
        Ok(Payload::Plain { bytes, .. }) => Some(bytes),
        Ok(Payload::Compressed { codec, reading, bytes, .. }) => {
            checker.codecs().decompress(codec, reading, bytes).ok()
        }
        Err(_) => None,
    };
    let Some(records) = records else { return };
    let Ok(mut cursor) = RecordCursor::start(&batch.info, records, limits) else { return };
    let mut next_offset = batch.first_offset;
    while let Ok(Some(record)) = cursor.next(records) {
        if batch.place(record.offset, next_offset) == RecordPlace::Wanted {
            next_offset = record.offset.saturating_add(1);
            on_record(&record);
        }
    }
}
