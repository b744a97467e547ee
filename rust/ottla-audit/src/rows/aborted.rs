//! The aborted transactions of a partition.

use ottla_format::batch::BatchInfo;
use ottla_log::sorting::sort_by_key;
use std::collections::HashMap;

/// First offset of a transaction, and offset of its marker.
type Span = (i64, i64);

/// The aborted transactions of a partition, or of a part of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AbortedTransactions {
    /// Of each producer, in the order of their markers.
    by_producer: HashMap<i64, Vec<Span>>,
}

impl AbortedTransactions {
    /// Adds a transaction.
    pub fn add(&mut self, producer_id: i64, first_offset: i64, last_offset: i64) {
        let spans = self.by_producer.entry(producer_id).or_default();
        // Markers come in the order of their offsets, unless the log is damaged.
        let at = spans.partition_point(|&(_, last)| last <= last_offset);
        spans.insert(at, (first_offset, last_offset));
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.by_producer.is_empty()
    }

    /// Producer, first offset and offset of the marker of each, in the order of the markers.
    pub fn list(&self) -> Vec<(i64, i64, i64)> {
        let spans = self.by_producer.iter().flat_map(|(&producer_id, spans)| {
            spans
                .iter()
                .map(move |&(first_offset, last_offset)| (producer_id, first_offset, last_offset))
        });
        let mut spans: Vec<_> = spans.collect();
        sort_by_key(&mut spans, |&(producer_id, _, last_offset)| (last_offset, producer_id));
        spans
    }

    /// Whether a batch belongs to one of them.
    pub(crate) fn has(&self, info: &BatchInfo) -> bool {
        if !info.is_transactional() || self.is_empty() {
            return false;
        }
        let spans = self.by_producer.get(&info.producer_id).map(Vec::as_slice).unwrap_or_default();
        let behind = spans.partition_point(|&(_, last_offset)| last_offset < info.base_offset);
        spans.get(behind).is_some_and(|&(first_offset, _)| first_offset <= info.last_offset)
    }
}
