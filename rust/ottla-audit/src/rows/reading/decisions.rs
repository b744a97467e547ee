//! What the markers of a log decide about its transactions.

use super::partition_walk::PartitionWalk;
use super::whole_batch::read_marker;
use crate::rows::aborted::AbortedTransactions;
use crate::segment::order::moved_to;
use crate::segment::scanner::Scanner;
use ottla_format::batch::BatchInfo;
use ottla_log::producers::transactions::CompletedTransaction;
use ottla_log::producers::{Appender, Pending, ProducerBatch, Producers};
use ottla_log::source::Source;
use std::io;

/// The transactions of a log, as a broker that reads it again knows them.
#[derive(Clone, Debug)]
pub(super) struct Decisions {
    producers: Producers,
    aborted: AbortedTransactions,
}

impl Decisions {
    /// The decisions of a log of which nothing was read.
    pub(super) fn new() -> Self {
        Self { producers: Producers::new(0), aborted: AbortedTransactions::default() }
    }

    /// Adds the next batch of a transaction or marker of the log.
    fn add(&mut self, batch: &ProducerBatch) {
        let mut pending = Pending::default();
        if self.producers.judge(batch, &Appender::REPLICATION, &mut pending).is_err() {
            // Plain records inside a transaction, which decide nothing.
            return;
        }
        for completed in pending.completed() {
            let CompletedTransaction { producer_id, first_offset, last_offset, is_commit } =
                *completed;
            if !is_commit {
                self.aborted.add(producer_id, first_offset, last_offset);
            }
        }
        // Where two batches have one offset, a marker may end what is not in the list of unstable
        // transactions. That list is not used here.
        self.producers.commit(pending).ok();
        // All that the log holds is replicated.
        self.producers.high_watermark_moved(i64::MAX);
    }

    /// The open transaction that comes first: its offset and its producer.
    pub(super) fn first_open(&self) -> Option<(i64, i64)> {
        let open = self.producers.by_id().into_iter();
        open.filter_map(|entry| Some((entry.transaction_first_offset?, entry.producer_id))).min()
    }

    /// Whether a batch belongs to an aborted transaction, or to one that is open.
    pub(super) fn withholds(&self, info: &BatchInfo) -> bool {
        if !info.is_transactional() {
            return false;
        }
        let entry = self.producers.get(info.producer_id);
        let open = entry.and_then(|entry| entry.transaction_first_offset);
        open.is_some_and(|first_offset| info.base_offset >= first_offset) || self.aborted.has(info)
    }

    /// The aborted transactions.
    pub(super) fn aborted(&self) -> &AbortedTransactions {
        &self.aborted
    }

    /// Adds what the batches of a walk say about transactions, as far as they are listed. One that
    /// is out of its place counts where it is, if only one place is left for it, or not at all.
    pub(super) fn read(
        &mut self,
        walk: &mut PartitionWalk,
        scanner: &mut Scanner,
        source: &dyn Source,
    ) -> io::Result<()> {
        while walk.unlisted().is_none()
            && let Some((info, is_valid)) = walk.next()
        {
            let found = walk.base_offset(&info);
            let base_offset = is_valid.then(|| walk.judge(&info).base_offset(found)).flatten();
            if let Some(base_offset) = base_offset
                && info.has_producer_id()
            {
                self.read_batch(&moved_to(&info, base_offset), scanner, source)?;
            }
            if base_offset == Some(found) {
                walk.accept(&info);
            } else {
                walk.pass();
            }
        }
        Ok(())
    }

    /// Adds what a batch with a producer id says about transactions.
    fn read_batch(
        &mut self,
        info: &BatchInfo,
        scanner: &mut Scanner,
        source: &dyn Source,
    ) -> io::Result<()> {
        if info.is_control() {
            if let Some(marker) = read_marker(scanner, source, info)? {
                self.add(&marker);
            }
        } else if info.is_transactional() {
            self.add(&ProducerBatch::of_records(info));
        }
        Ok(())
    }
}
