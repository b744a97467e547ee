//! What the coordinator of a transaction is asked before a Produce is appended (KIP-890).

use crate::plane::DataPlane;
use crate::topics::{Handle, Refused};
use crate::wire::TopicKey;
use crate::wire::produce::ProduceRequest;
use ottla_format::attributes::TRANSACTIONAL;
use ottla_format::header::Header;
use ottla_log::producers::Guard;
use std::collections::HashMap;

/// The first version of Produce that adds its partitions to the transaction.
const IMPLICIT_VERSION: i16 = 12;

/// A transaction whose coordinator must consent before it continues on some partitions, and the
/// guards with which it then does.
#[derive(Clone, Debug)]
pub struct Verification {
    /// The transactional id of the request.
    pub transactional_id: Vec<u8>,
    /// The producer's id.
    pub producer_id: i64,
    /// Its epoch.
    pub producer_epoch: i16,
    /// Whether the partitions are to be added to the transaction, not only looked up in it: Produce
    /// 12 and newer (KIP-890 part 2).
    pub adds_partitions: bool,
    /// The partitions, by the names of their topics.
    pub partitions: Vec<(Vec<u8>, i32)>,
    guards: HashMap<Handle, Guard>,
}

impl Verification {
    pub(crate) fn guard(&self, handle: Handle) -> Option<&Guard> {
        self.guards.get(&handle)
    }
}

/// How partitions are asked about.
pub(crate) struct Asking<'a> {
    pub(crate) now_ms: i64,
    /// Those that are refused anyway are not asked about.
    pub(crate) refused: &'a Refused,
    /// The coordinator has answered already.
    pub(crate) is_answered: bool,
}

/// What the first look at the transactional batches of a request tells.
pub(crate) enum Transactions {
    /// Nothing is to be asked.
    Settled,
    /// The coordinator is to be asked.
    Verify(Verification),
    /// They are of more than one producer id and epoch.
    SeveralProducers,
}

/// Producer id, epoch and base sequence of a set whose first batch is transactional.
fn transactional_producer(records: &[u8]) -> Option<(i64, i16, i32)> {
    let header = Header::read(records, 0).filter(|header| header.magic >= 2)?;
    let is_transactional = header.attributes & TRANSACTIONAL != 0 && header.producer_id >= 0;
    is_transactional.then_some((header.producer_id, header.producer_epoch, header.base_sequence))
}

impl DataPlane {
    /// Looks at the transactional batches of a request, and begins to verify those whose transaction
    /// is not open on their partition.
    pub(crate) fn transactions_of(
        &mut self,
        request: &ProduceRequest<'_>,
        asking: &Asking<'_>,
    ) -> Transactions {
        let Some(transactional_id) = request.transactional_id else { return Transactions::Settled };
        let adds_partitions = request.version >= IMPLICIT_VERSION;
        let mut found: Option<Verification> = None;
        for topic in &request.topics {
            for partition in request.of(topic) {
                let records = partition.records.unwrap_or_default();
                let Some((producer_id, producer_epoch, base_sequence)) =
                    transactional_producer(records)
                else {
                    continue;
                };
                let known = found.get_or_insert_with(|| Verification {
                    transactional_id: transactional_id.to_vec(),
                    producer_id,
                    producer_epoch,
                    adds_partitions,
                    partitions: Vec::new(),
                    guards: HashMap::new(),
                });
                if (known.producer_id, known.producer_epoch) != (producer_id, producer_epoch) {
                    return Transactions::SeveralProducers;
                }
                if !asking.is_answered {
                    self.begin_verification_of(
                        known,
                        topic.key,
                        partition.index,
                        base_sequence,
                        asking,
                    );
                }
            }
        }
        match found {
            Some(verification) if !verification.partitions.is_empty() => {
                Transactions::Verify(verification)
            }
            _ => Transactions::Settled,
        }
    }

    fn begin_verification_of(
        &mut self,
        verification: &mut Verification,
        key: TopicKey<'_>,
        index: i32,
        base_sequence: i32,
        asking: &Asking<'_>,
    ) {
        let Some(topic) = self.topics.find(key) else { return };
        let name = topic.name.clone();
        let Some(handle) = topic.partition(index) else { return };
        let Some(partition) = self.partition_mut(handle) else { return };
        let must_be_verified = partition.leader.settings().transaction_verification;
        let adds_partitions = verification.adds_partitions;
        if asking.refused.code(&name, index).is_some() || !(adds_partitions || must_be_verified) {
            return;
        }
        let begun = partition.leader.begin_verification(
            verification.producer_id,
            verification.producer_epoch,
            base_sequence,
            if adds_partitions { 2 } else { 1 },
            asking.now_ms,
        );
        // An epoch that is fenced is refused by the append.
        if let Ok(Some(guard)) = begun {
            verification.partitions.push((name.to_vec(), index));
            verification.guards.insert(handle, guard);
        }
    }
}
