//! What a partition knows of its producers, and what it lets them append (`producer-state.md` §1–§4).
//!
//! Kafka's rules of idempotence and transactions: epochs fence, sequences follow, the last five
//! batches of an epoch are known again, markers end transactions, and the first batch of a
//! transaction needs the coordinator's word (KIP-98, KIP-360, KIP-890). Time, offsets and bytes come
//! from outside: `ottla-leader` puts them together with the verdict on the bytes, and
//! `ottla-audit` reads a log again as a broker does at its start.
//!
//! A set of batches is judged against a copy of the entries it touches, and that copy is committed
//! as a whole: what is refused leaves no trace.

use self::snapshot::{SnapshotError, read_snapshot, write_snapshot};
use self::transactions::{AbortedTransaction, CompletedTransaction, NotBegun, Transactions};
use ottla_format::batch::{BatchInfo, Payload, RecordCursor, payload};
use ottla_format::check::ControlRecord;
use ottla_format::compression::Codecs;
use ottla_format::error::{Error, ErrorKind};
use ottla_format::error_code::ErrorCode;
use ottla_format::header::{REMEMBERED_BATCHES, decrement_sequence, increment_sequence};
use ottla_format::limits::Limits;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

pub mod snapshot;
pub mod transactions;

/// Who appends: decides how much is checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// A producer.
    #[default]
    Client,
    /// A group or transaction coordinator, through its own broker.
    Coordinator,
    /// The leader that this broker follows; its decision stands.
    Replication,
}

impl Origin {
    /// The origin of a name: `client`, `coordinator` or `replication`.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "client" => Some(Self::Client),
            "coordinator" => Some(Self::Coordinator),
            "replication" => Some(Self::Replication),
            _ => None,
        }
    }
}

/// A batch that is in the log, as its producer's entry remembers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RememberedBatch {
    /// Sequence of its last record.
    pub last_sequence: i32,
    /// Offset of its last record.
    pub last_offset: i64,
    /// Offset of its last record less that of its first.
    pub offset_delta: i32,
    /// Its max timestamp.
    pub timestamp: i64,
}

impl RememberedBatch {
    /// No batch.
    pub const NONE: Self =
        Self { last_sequence: -1, last_offset: -1, offset_delta: 0, timestamp: -1 };

    /// Sequence of its first record.
    pub fn first_sequence(&self) -> i32 {
        decrement_sequence(self.last_sequence, self.offset_delta)
    }

    /// Offset of its first record.
    pub fn first_offset(&self) -> i64 {
        self.last_offset.wrapping_sub(i64::from(self.offset_delta))
    }
}

/// What is known of one producer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProducerEntry {
    /// Its id.
    pub producer_id: i64,
    /// Its epoch, −1 before anything is known.
    pub producer_epoch: i16,
    /// Epoch of the coordinator that wrote its last marker, −1 for none.
    pub coordinator_epoch: i32,
    /// Max timestamp of its last batch, marker included: its life is counted from here.
    pub last_timestamp: i64,
    /// First offset of its open transaction.
    pub transaction_first_offset: Option<i64>,
    remembered: [RememberedBatch; REMEMBERED_BATCHES],
    count: u8,
}

impl ProducerEntry {
    /// A producer of which nothing is known.
    pub fn unknown(producer_id: i64) -> Self {
        Self {
            producer_id,
            producer_epoch: -1,
            coordinator_epoch: -1,
            last_timestamp: -1,
            transaction_first_offset: None,
            remembered: [RememberedBatch::NONE; REMEMBERED_BATCHES],
            count: 0,
        }
    }

    /// Its newest batches of its epoch, oldest first, at most [`REMEMBERED_BATCHES`].
    pub fn batches(&self) -> &[RememberedBatch] {
        self.remembered.get(..usize::from(self.count)).unwrap_or_default()
    }

    /// Sequence of its last record, −1 for none in its epoch.
    pub fn last_sequence(&self) -> i32 {
        self.batches().last().map_or(-1, |batch| batch.last_sequence)
    }

    /// Adds a batch; the oldest gives way.
    fn remember(&mut self, batch: RememberedBatch) {
        if usize::from(self.count) == REMEMBERED_BATCHES {
            self.remembered.rotate_left(1);
        } else {
            self.count += 1;
        }
        if let Some(slot) = self.remembered.get_mut(usize::from(self.count) - 1) {
            *slot = batch;
        }
    }

    fn adopt_epoch(&mut self, producer_epoch: i16) {
        if self.producer_epoch != producer_epoch {
            self.producer_epoch = producer_epoch;
            self.count = 0;
        }
    }

    /// Adds a batch of records.
    fn append(&mut self, batch: &ProducerBatch) {
        self.adopt_epoch(batch.producer_epoch);
        self.remember(RememberedBatch {
            last_sequence: batch.last_sequence,
            last_offset: batch.last_offset,
            offset_delta: batch.last_offset.wrapping_sub(batch.base_offset) as i32,
            timestamp: batch.max_timestamp,
        });
        self.last_timestamp = batch.max_timestamp;
    }

    /// The batch in memory that this one repeats.
    fn repeated_by(&self, batch: &ProducerBatch) -> Option<RememberedBatch> {
        let sequences = (batch.base_sequence, batch.last_sequence);
        self.batches()
            .iter()
            .find(|known| (known.first_sequence(), known.last_sequence) == sequences)
            .filter(|_| self.producer_epoch == batch.producer_epoch)
            .copied()
    }

    /// Takes over what a set of batches has done to a copy that remembered none.
    fn update(&mut self, copy: &Self) {
        self.adopt_epoch(copy.producer_epoch);
        for &batch in copy.batches() {
            self.remember(batch);
        }
        self.coordinator_epoch = copy.coordinator_epoch;
        self.transaction_first_offset = copy.transaction_first_offset;
        self.last_timestamp = copy.last_timestamp;
    }

    fn is_expired(&self, now_ms: i64, expiration_ms: i64) -> bool {
        self.transaction_first_offset.is_none()
            && now_ms.wrapping_sub(self.last_timestamp) >= expiration_ms
    }
}

/// A batch with a producer id, as these rules see it.
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
    /// The end of a transaction.
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
    /// The batch that `info` tells of, `data` holding it; `None` if it has no producer id. Only a
    /// marker is looked into.
    ///
    /// # Errors
    /// What keeps a marker from being read, with [`ErrorKind::ControlBatch`] for a control record
    /// that ends no transaction.
    pub fn read(data: &[u8], info: &BatchInfo, codecs: &mut Codecs) -> Result<Option<Self>, Error> {
        if !info.has_producer_id() {
            return Ok(None);
        }
        let content = if info.is_control() {
            let start = info.position as usize;
            let end = start.saturating_add(info.size as usize);
            let whole = data.get(start..end).unwrap_or_default();
            marker(whole, info, codecs).map_err(|error| error.within(start))?
        } else {
            Content::Data
        };
        Ok(Some(Self::with(info, content)))
    }

    /// A batch of records with a producer id.
    pub fn of_records(info: &BatchInfo) -> Self {
        Self::with(info, Content::Data)
    }

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
        Payload::Plain { start } => whole.get(start..).unwrap_or_default(),
        Payload::Compressed { codec, bytes, start } => {
            codecs.decompress(codec, info.magic, bytes).map_err(|kind| Error::new(kind, start))?
        }
    };
    let mut cursor = RecordCursor::start(info, records, Limits::default())?;
    let Some(record) = cursor.next(records)? else { return Ok(None) };
    if info.record_count == Some(1) {
        // Behind the last record nothing may follow.
        cursor.next(records)?;
    }
    let control = ControlRecord::read(0, record.key, record.value);
    let control = control.map_err(|kind| Error::new(kind, 0))?;
    Ok(Some((control, record.timestamp)))
}

/// Why a producer may not append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the fields say what they are
pub enum ProducerRefusal {
    /// An epoch below the producer's: another instance has taken over.
    StaleEpoch { producer_id: i64, found: i16, current: i16 },
    /// A transaction begins here that the coordinator was not asked about (KIP-890).
    NotVerified { producer_id: i64, producer_epoch: i16 },
    /// Plain records inside the producer's own transaction.
    PlainInTransaction { producer_id: i64, first_offset: i64 },
    /// Not the sequence that follows.
    OutOfOrderSequence { producer_id: i64, producer_epoch: i16, found: i32, expected: i32 },
    /// Nothing is known of a producer that goes on (KIP-360 recovers from it).
    UnknownProducer { producer_id: i64, producer_epoch: i16, found: i32 },
    /// A marker of a coordinator that another has replaced.
    CoordinatorFenced { producer_id: i64, found: i32, current: i32 },
    /// A marker ends a transaction that its data do not begin.
    NotBegun(NotBegun),
    /// A marker that cannot be read.
    UnreadableMarker(Error),
}

impl ProducerRefusal {
    /// Stable kebab-case name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::StaleEpoch { .. } => "stale-epoch",
            Self::NotVerified { .. } => "not-verified",
            Self::PlainInTransaction { .. } => "plain-in-transaction",
            Self::OutOfOrderSequence { .. } => "out-of-order-sequence",
            Self::UnknownProducer { .. } => "unknown-producer",
            Self::CoordinatorFenced { .. } => "coordinator-fenced",
            Self::NotBegun(_) => "transaction-not-begun",
            Self::UnreadableMarker(error) => error.kind.name(),
        }
    }
}

impl ProducerRefusal {
    /// Kafka's error code.
    pub fn error(&self) -> ErrorCode {
        match self {
            Self::StaleEpoch { .. } => ErrorCode::InvalidProducerEpoch,
            Self::NotVerified { .. } | Self::PlainInTransaction { .. } => {
                ErrorCode::InvalidTxnState
            }
            Self::OutOfOrderSequence { .. } => ErrorCode::OutOfOrderSequenceNumber,
            Self::UnknownProducer { .. } => ErrorCode::UnknownProducerId,
            Self::CoordinatorFenced { .. } => ErrorCode::TransactionCoordinatorFenced,
            // Kafka's code meets a marker it did not expect.
            Self::NotBegun(_) | Self::UnreadableMarker(_) => ErrorCode::UnknownServerError,
        }
    }
}

impl fmt::Display for ProducerRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::StaleEpoch { producer_id, found, current } => write!(
                f,
                "producer {producer_id} sent epoch {found}, expected {current} or above: another \
                 instance has taken over"
            ),
            Self::NotVerified { producer_id, producer_epoch } => write!(
                f,
                "producer {producer_id} of epoch {producer_epoch} has no transaction open here, \
                 and the coordinator did not verify one for these records"
            ),
            Self::PlainInTransaction { producer_id, first_offset } => write!(
                f,
                "producer {producer_id} sent records outside of a transaction, expected records of \
                 the one it has open since offset {first_offset}"
            ),
            Self::OutOfOrderSequence { producer_id, producer_epoch, found, expected } => write!(
                f,
                "producer {producer_id} of epoch {producer_epoch} sent sequence {found}, expected \
                 {expected}"
            ),
            Self::UnknownProducer { producer_id, producer_epoch, found } => write!(
                f,
                "producer {producer_id} of epoch {producer_epoch} sent sequence {found}, expected \
                 0: nothing is known of what it sent before"
            ),
            Self::CoordinatorFenced { producer_id, found, current } => write!(
                f,
                "a marker for producer {producer_id} comes from coordinator epoch {found}, \
                 expected {current} or above"
            ),
            Self::NotBegun(NotBegun { transaction }) => write!(
                f,
                "the marker at offset {} ends a transaction of producer {} from offset {} that was \
                 ended before",
                transaction.last_offset, transaction.producer_id, transaction.first_offset
            ),
            Self::UnreadableMarker(error) => write!(f, "a transaction marker with {error}"),
        }
    }
}

impl std::error::Error for ProducerRefusal {}

/// What happens to a producer of which nothing is known and whose sequence is not 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownSequence {
    /// Taken as it is, as Kafka does since 2.5 (KIP-360).
    Accept,
    /// Refused with `UNKNOWN_PRODUCER_ID` (59), as Kafka did before.
    Refuse,
}

/// Leave to begin a transaction on a partition, given once the coordinator is asked (KIP-890). Equal
/// to itself and its clones alone.
#[derive(Clone, Debug)]
pub struct Guard(Arc<()>);

impl Guard {
    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

#[derive(Clone, Debug)]
struct Verification {
    created_ms: i64,
    guard: Guard,
    lowest_sequence: i32,
    producer_epoch: i16,
    /// The client speaks transaction version 2: every transaction has an epoch of its own.
    bumps_epoch: bool,
}

/// On whose behalf a set of batches is judged.
#[derive(Clone, Copy, Debug)]
pub struct Appender<'a> {
    /// Who appends.
    pub origin: Origin,
    /// The first batch of a transaction needs a guard.
    pub must_be_verified: bool,
    /// The guard that came with the set.
    pub guard: Option<&'a Guard>,
    /// What happens to a producer of which nothing is known and whose sequence is not 0.
    pub unknown: UnknownSequence,
}

impl Appender<'_> {
    /// A leader that this partition follows, or its own log read again.
    pub const REPLICATION: Self = Self {
        origin: Origin::Replication,
        must_be_verified: false,
        guard: None,
        unknown: UnknownSequence::Accept,
    };
}

/// A copy of one producer's entry while a set of batches is judged.
#[derive(Clone, Debug)]
struct Update {
    copy: ProducerEntry,
    begun: Vec<i64>,
    /// When it came, among those of its set.
    place: u64,
}

/// What a set of batches will do, once it is in the log.
#[derive(Clone, Debug, Default)]
pub struct Pending {
    /// That of the batch before: sets of one producer, nearly all, need no table.
    newest: Option<Update>,
    others: HashMap<i64, Update>,
    completed: Vec<CompletedTransaction>,
    verified: Vec<i64>,
}

impl Pending {
    /// The updates, in the order in which Kafka's table of them holds them.
    fn take_updates(&mut self) -> impl Iterator<Item = Update> + use<> {
        let alone = if self.others.is_empty() { self.newest.take() } else { None };
        let others = self.others.drain().map(|(_, update)| update);
        let mut updates: Vec<_> = others.chain(self.newest.take()).collect();
        updates.sort_unstable_by_key(|update| update.place);
        let mut order = TableOrder::default();
        for (index, update) in updates.iter().enumerate() {
            let before = updates.iter().take(index).map(|update| update.copy.producer_id);
            order.add(update.copy.producer_id, before);
        }
        updates.sort_by_key(|update| order.bucket(update.copy.producer_id));
        updates.into_iter().chain(alone)
    }

    /// The transactions that its markers end.
    pub fn completed(&self) -> &[CompletedTransaction] {
        &self.completed
    }

    fn place(&mut self, before: Option<&ProducerEntry>, producer_id: i64) -> &mut Update {
        let is_newest =
            self.newest.as_ref().is_some_and(|newest| newest.copy.producer_id == producer_id);
        let place = (self.others.len() + usize::from(self.newest.is_some())) as u64;
        let next = if is_newest { self.newest.take() } else { self.others.remove(&producer_id) };
        let next = next.unwrap_or_else(|| {
            let mut copy = before.cloned().unwrap_or_else(|| ProducerEntry::unknown(producer_id));
            copy.count = 0;
            Update { copy, begun: Vec::new(), place }
        });
        if let Some(last) = self.newest.take() {
            self.others.insert(last.copy.producer_id, last);
        }
        self.newest.insert(next)
    }
}

#[derive(Clone, Debug)]
struct Kept {
    entry: ProducerEntry,
    /// When it came, among all that ever came.
    place: u64,
}

/// The producers of a partition.
#[derive(Clone, Debug)]
pub struct Producers {
    entries: HashMap<i64, Kept>,
    order: TableOrder,
    transactions: Transactions,
    verifications: HashMap<i64, Verification>,
    end_offset: i64,
}

/// The order in which a Java table of producers by id holds its entries, which is that of a snapshot:
/// by bucket, and in a bucket as they came. (A table of 64 buckets or more makes a tree of one that
/// holds more than eight, and may then begin with another of them.)
#[derive(Clone, Debug)]
struct TableOrder {
    /// How many came.
    places: u64,
    /// A power of two.
    buckets: u64,
}

impl Default for TableOrder {
    fn default() -> Self {
        Self { places: 0, buckets: 16 }
    }
}

impl TableOrder {
    /// Below as many buckets, the table grows instead where one holds too many.
    const LEAST_BUCKETS_WITH_TREES: u64 = 64;
    const LONGEST_LIST: usize = 8;

    /// A producer comes to those that the table holds; gives its place.
    fn add(&mut self, producer_id: i64, held: impl ExactSizeIterator<Item = i64>) -> u64 {
        let size = held.len() as u64;
        if self.buckets < Self::LEAST_BUCKETS_WITH_TREES {
            let bucket = self.bucket(producer_id);
            if held.filter(|&id| self.bucket(id) == bucket).count() >= Self::LONGEST_LIST {
                self.buckets *= 2;
            }
        }
        // It doubles when it is more than three quarters full.
        if size + 1 > self.buckets / 4 * 3 {
            self.buckets *= 2;
        }
        self.places += 1;
        self.places
    }

    /// Java's hash of a `Long`, as its tables spread it.
    fn bucket(&self, producer_id: i64) -> u64 {
        let folded = (producer_id ^ (producer_id as u64 >> 32) as i64) as u32;
        u64::from(folded ^ (folded >> 16)) & (self.buckets - 1)
    }
}

impl Producers {
    /// No producer, and nothing of the log seen below `end_offset`.
    pub fn new(end_offset: i64) -> Self {
        Self {
            entries: HashMap::new(),
            order: TableOrder::default(),
            transactions: Transactions::default(),
            verifications: HashMap::new(),
            end_offset,
        }
    }

    /// What is known of a producer.
    pub fn get(&self, producer_id: i64) -> Option<&ProducerEntry> {
        self.entries.get(&producer_id).map(|kept| &kept.entry)
    }

    /// How many are known.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing is known: of no producer, and of no transaction.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && !self.transactions.has_unreplicated()
    }

    /// All of them, by id.
    pub fn by_id(&self) -> Vec<&ProducerEntry> {
        let mut all: Vec<_> = self.entries.values().map(|kept| &kept.entry).collect();
        all.sort_unstable_by_key(|entry| entry.producer_id);
        all
    }

    /// Their transactions.
    pub fn transactions(&self) -> &Transactions {
        &self.transactions
    }

    /// The offset up to which the log has been seen.
    pub fn end_offset(&self) -> i64 {
        self.end_offset
    }

    /// The log has been seen up to an offset.
    pub fn set_end_offset(&mut self, end_offset: i64) {
        self.end_offset = end_offset;
    }

    /// Judges a batch after those that are in `pending`, in Kafka's order; first failure wins. Gives
    /// the batch in the log that this one repeats.
    ///
    /// # Errors
    /// [`ProducerRefusal`].
    pub fn judge(
        &self,
        batch: &ProducerBatch,
        by: &Appender<'_>,
        pending: &mut Pending,
    ) -> Result<Option<RememberedBatch>, ProducerRefusal> {
        let origin = by.origin;
        let stored = self.get(batch.producer_id);
        if origin == Origin::Client
            && let Some(known) = stored.and_then(|stored| stored.repeated_by(batch))
        {
            return Ok(Some(known));
        }
        if origin != Origin::Replication && batch.is_transactional {
            self.may_begin(batch, stored, by, pending)?;
        }
        let update = pending.place(stored, batch.producer_id);
        let completed = match batch.content {
            Content::Data => {
                if origin != Origin::Replication {
                    is_not_stale(Some(&update.copy), batch.producer_id, batch.producer_epoch)?;
                }
                if origin == Origin::Client {
                    let verification = self.verifications.get(&batch.producer_id);
                    sequence_follows(&update.copy, stored, verification, batch, by.unknown)?;
                }
                update.append(batch)?;
                None
            }
            Content::Marker { is_commit, coordinator_epoch, timestamp } => {
                if origin != Origin::Replication {
                    is_not_stale(Some(&update.copy), batch.producer_id, batch.producer_epoch)?;
                    let (found, current) = (coordinator_epoch, update.copy.coordinator_epoch);
                    if current > found {
                        let producer_id = batch.producer_id;
                        return Err(ProducerRefusal::CoordinatorFenced {
                            producer_id,
                            found,
                            current,
                        });
                    }
                }
                let first_offset = update.copy.transaction_first_offset.take();
                update.copy.adopt_epoch(batch.producer_epoch);
                update.copy.coordinator_epoch = coordinator_epoch;
                update.copy.last_timestamp = timestamp;
                first_offset.map(|first_offset| CompletedTransaction {
                    producer_id: batch.producer_id,
                    first_offset,
                    last_offset: batch.base_offset,
                    is_commit,
                })
            }
            Content::EmptyControl => None,
        };
        pending.completed.extend(completed);
        if batch.is_transactional && !self.begins_next(batch) {
            pending.verified.push(batch.producer_id);
        }
        Ok(None)
    }

    /// A transactional batch goes on with the transaction of its epoch, or needs the coordinator's
    /// word (KIP-890).
    fn may_begin(
        &self,
        batch: &ProducerBatch,
        stored: Option<&ProducerEntry>,
        by: &Appender<'_>,
        pending: &Pending,
    ) -> Result<(), ProducerRefusal> {
        let (producer_id, producer_epoch) = (batch.producer_id, batch.producer_epoch);
        if has_open_transaction(stored, producer_epoch) {
            return Ok(());
        }
        is_not_stale(stored, producer_id, producer_epoch)?;
        if !by.must_be_verified || batch.content != Content::Data {
            return Ok(());
        }
        let verification = self
            .verifications
            .get(&producer_id)
            .filter(|_| !pending.verified.contains(&producer_id));
        match (verification, by.guard) {
            (Some(verification), Some(guard)) if verification.guard.is(guard) => Ok(()),
            _ => Err(ProducerRefusal::NotVerified { producer_id, producer_epoch }),
        }
    }

    /// Whether a marker finds a verification for the transaction that comes after it: with version 2
    /// that is one of the epoch which the marker brings.
    fn begins_next(&self, batch: &ProducerBatch) -> bool {
        batch.content != Content::Data
            && self.verifications.get(&batch.producer_id).is_some_and(|verification| {
                verification.bumps_epoch && verification.producer_epoch == batch.producer_epoch
            })
    }

    /// Appends a client's batch that goes on where its producer left off, outside of transactions:
    /// nearly every batch, and what [`judge`](Self::judge) and [`commit`](Self::commit) would do
    /// with it. `false` for any other, with nothing changed.
    pub fn append_next(&mut self, batch: &ProducerBatch, origin: Origin) -> bool {
        if origin != Origin::Client || batch.is_transactional || !self.verifications.is_empty() {
            return false;
        }
        let Some(Kept { entry, .. }) = self.entries.get_mut(&batch.producer_id) else {
            return false;
        };
        let is_next = batch.content == Content::Data
            && entry.producer_epoch == batch.producer_epoch
            && entry.transaction_first_offset.is_none()
            && !entry.batches().is_empty()
            && increment_sequence(entry.last_sequence(), 1) == batch.base_sequence
            && entry.repeated_by(batch).is_none();
        if is_next {
            entry.append(batch);
        }
        is_next
    }

    /// Takes over what was judged, once it is in the log: gives the transactions that it aborts, as
    /// the index keeps them.
    ///
    /// # Errors
    /// [`NotBegun`], with everything else taken over. A leader or follower never sees it: two
    /// batches at one offset make it, which only a damaged log holds.
    pub fn commit(&mut self, mut pending: Pending) -> Result<Vec<AbortedTransaction>, NotBegun> {
        for update in pending.take_updates() {
            for first_offset in update.begun {
                self.transactions.begin(first_offset, update.copy.producer_id);
            }
            self.change(update.copy.producer_id, |entry| entry.update(&update.copy));
        }
        for producer_id in pending.verified {
            self.verifications.remove(&producer_id);
        }
        let mut aborted = Vec::new();
        let mut result = Ok(());
        for completed in &pending.completed {
            let last_stable_offset = self.transactions.last_stable_offset_after(completed);
            let CompletedTransaction { producer_id, first_offset, last_offset, is_commit } =
                *completed;
            if !is_commit {
                aborted.push(AbortedTransaction {
                    producer_id,
                    first_offset,
                    last_offset,
                    last_stable_offset,
                });
            }
            result = result.and(self.transactions.complete(completed));
        }
        result.map(|()| aborted)
    }

    /// Changes the entry of a producer, which is new where it was not known.
    fn change(&mut self, producer_id: i64, change: impl FnOnce(&mut ProducerEntry)) {
        if let Some(kept) = self.entries.get_mut(&producer_id) {
            change(&mut kept.entry);
        } else {
            let place = self.order.add(producer_id, self.entries.keys().copied());
            let mut entry = ProducerEntry::unknown(producer_id);
            change(&mut entry);
            self.entries.insert(producer_id, Kept { entry, place });
        }
    }

    /// The coordinator is about to be asked whether a transaction goes on: gives the guard that the
    /// first batch has to carry, or `None` while the transaction of this epoch is open.
    ///
    /// # Errors
    /// [`ProducerRefusal::StaleEpoch`].
    pub fn begin_verification(
        &mut self,
        producer_id: i64,
        producer_epoch: i16,
        base_sequence: i32,
        bumps_epoch: bool,
        now_ms: i64,
    ) -> Result<Option<Guard>, ProducerRefusal> {
        let stored = self.get(producer_id);
        if has_open_transaction(stored, producer_epoch) {
            return Ok(None);
        }
        is_not_stale(stored, producer_id, producer_epoch)?;
        let verification = self.verifications.entry(producer_id).or_insert_with(|| Verification {
            created_ms: now_ms,
            guard: Guard(Arc::new(())),
            lowest_sequence: base_sequence,
            producer_epoch,
            bumps_epoch,
        });
        if producer_epoch > verification.producer_epoch {
            verification.producer_epoch = producer_epoch;
            verification.lowest_sequence = base_sequence;
        } else if producer_epoch == verification.producer_epoch {
            verification.lowest_sequence = verification.lowest_sequence.min(base_sequence);
        }
        Ok(Some(verification.guard.clone()))
    }

    /// Drops producers and verifications that nothing was heard of for `expiration_ms`. Time is that
    /// of records: a producer of old timestamps may go at once.
    pub fn expire(&mut self, now_ms: i64, expiration_ms: i64) {
        self.entries.retain(|_, kept| !kept.entry.is_expired(now_ms, expiration_ms));
        self.verifications
            .retain(|_, verification| now_ms.wrapping_sub(verification.created_ms) < expiration_ms);
    }

    /// The high watermark has moved.
    pub fn high_watermark_moved(&mut self, high_watermark: i64) {
        self.transactions.release_below(high_watermark);
    }

    /// The log start has moved. Producers stay, whatever becomes of their records (KIP-360).
    pub fn log_start_moved(&mut self, log_start_offset: i64) {
        self.transactions.release_below(log_start_offset);
        self.end_offset = self.end_offset.max(log_start_offset);
    }

    /// Forgets every producer and transaction, not the verifications under way.
    pub fn clear(&mut self, end_offset: i64) {
        self.entries.clear();
        self.transactions.clear();
        self.end_offset = end_offset;
    }

    /// Forgets the verifications under way, too.
    pub fn forget_verifications(&mut self) {
        self.verifications.clear();
    }

    /// Loads a snapshot of offset `end_offset` into empty state, without producers that are expired.
    ///
    /// # Errors
    /// [`SnapshotError`], with nothing loaded.
    pub fn load(
        &mut self,
        snapshot: &[u8],
        end_offset: i64,
        now_ms: i64,
        expiration_ms: i64,
    ) -> Result<(), SnapshotError> {
        let entries = read_snapshot(snapshot)?;
        for entry in entries.iter().filter(|entry| !entry.is_expired(now_ms, expiration_ms)) {
            self.change(entry.producer_id, |known| *known = entry.clone());
            if let Some(first_offset) = entry.transaction_first_offset {
                self.transactions.begin(first_offset, entry.producer_id);
            }
        }
        self.end_offset = end_offset;
        Ok(())
    }

    /// The `.snapshot` file of now, its entries in the order in which Kafka's table holds them.
    pub fn snapshot(&self) -> Vec<u8> {
        let mut all: Vec<_> = self.entries.values().collect();
        all.sort_unstable_by_key(|kept| (self.order.bucket(kept.entry.producer_id), kept.place));
        write_snapshot(all.iter().map(|kept| &kept.entry))
    }
}

fn has_open_transaction(stored: Option<&ProducerEntry>, producer_epoch: i16) -> bool {
    stored.is_some_and(|stored| {
        stored.transaction_first_offset.is_some() && stored.producer_epoch == producer_epoch
    })
}

fn is_not_stale(
    stored: Option<&ProducerEntry>,
    producer_id: i64,
    found: i16,
) -> Result<(), ProducerRefusal> {
    let current = stored.map_or(-1, |stored| stored.producer_epoch);
    if found < current {
        return Err(ProducerRefusal::StaleEpoch { producer_id, found, current });
    }
    Ok(())
}

/// What sequence a client's batch may begin with.
fn sequence_follows(
    copy: &ProducerEntry,
    stored: Option<&ProducerEntry>,
    verification: Option<&Verification>,
    batch: &ProducerBatch,
    unknown: UnknownSequence,
) -> Result<(), ProducerRefusal> {
    let ProducerBatch { producer_id, producer_epoch, base_sequence: found, .. } = *batch;
    let refused = |expected| {
        Err(ProducerRefusal::OutOfOrderSequence { producer_id, producer_epoch, found, expected })
    };
    let without_state = || {
        if unknown == UnknownSequence::Refuse && found != 0 {
            return Err(ProducerRefusal::UnknownProducer { producer_id, producer_epoch, found });
        }
        Ok(())
    };
    if let Some(verification) = verification {
        let has_batches = stored.is_some_and(|stored| !stored.batches().is_empty());
        if verification.bumps_epoch && found != 0 && !has_batches {
            return refused(0);
        }
        if found > verification.lowest_sequence {
            return refused(verification.lowest_sequence);
        }
    }
    let stored_epoch = stored.map_or(-1, |stored| stored.producer_epoch);
    if producer_epoch != copy.producer_epoch {
        return match found {
            0 => Ok(()),
            _ if copy.producer_epoch == -1 => without_state(),
            _ => refused(0),
        };
    }
    if stored_epoch == -1 {
        return Ok(());
    }
    let last_sequence = if !copy.batches().is_empty() {
        copy.last_sequence()
    } else if producer_epoch == stored_epoch {
        stored.map_or(-1, ProducerEntry::last_sequence)
    } else {
        -1
    };
    let expected = increment_sequence(last_sequence, 1);
    if found == expected {
        return Ok(());
    }
    if last_sequence == -1 {
        // Of this epoch only a marker is known.
        without_state()?;
    }
    refused(expected)
}

impl Update {
    fn append(&mut self, batch: &ProducerBatch) -> Result<(), ProducerRefusal> {
        self.copy.append(batch);
        match self.copy.transaction_first_offset {
            Some(first_offset) if !batch.is_transactional => {
                let producer_id = batch.producer_id;
                return Err(ProducerRefusal::PlainInTransaction { producer_id, first_offset });
            }
            None if batch.is_transactional => {
                self.copy.transaction_first_offset = Some(batch.base_offset);
                self.begun.push(batch.base_offset);
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BY_CLIENT: Appender<'_> = Appender { origin: Origin::Client, ..Appender::REPLICATION };

    /// Batches around what comes next: of two producers, with sequences that follow, repeat, skip
    /// and wrap, epochs that go up and down, and transactions.
    fn batch(random: &mut u64, offset: i64, last: i32) -> ProducerBatch {
        let mut below = |limit: u64| {
            *random ^= *random << 13;
            *random ^= *random >> 7;
            *random ^= *random << 17;
            (*random >> 11) % limit
        };
        let base_sequence = match below(10) {
            0 => 0,
            1 => i32::MAX,
            2 => increment_sequence(last, 2),
            3 => last.max(0),
            _ => increment_sequence(last, 1),
        };
        let offset_delta = below(3) as i32;
        ProducerBatch {
            base_offset: offset,
            last_offset: offset + i64::from(offset_delta),
            producer_id: i64::from(below(8) == 0),
            producer_epoch: (offset / 60) as i16 - i16::from(below(20) == 0),
            base_sequence,
            last_sequence: increment_sequence(base_sequence, offset_delta),
            max_timestamp: below(100) as i64,
            is_transactional: below(40) == 0,
            content: match below(8) {
                0 => Content::Marker { is_commit: true, coordinator_epoch: 0, timestamp: 3 },
                _ => Content::Data,
            },
        }
    }

    #[test]
    fn a_batch_that_is_appended_in_place_leaves_what_judging_it_does() {
        let (mut short_ways, mut random) = (0, 0x5eed);
        for _ in 0..200 {
            let (mut ours, mut plain) = (Producers::new(0), Producers::new(0));
            let (mut offset, mut last) = (0, -1);
            for _ in 0..100 {
                let batch = batch(&mut random, offset, last);
                let mut pending = Pending::default();
                let judged = plain.judge(&batch, &BY_CLIENT, &mut pending);
                if judged == Ok(None) {
                    plain.commit(pending).unwrap();
                    (offset, last) = (batch.last_offset + 1, batch.last_sequence);
                }
                if ours.append_next(&batch, Origin::Client) {
                    assert_eq!(judged, Ok(None), "{batch:?}");
                    short_ways += 1;
                } else {
                    let mut pending = Pending::default();
                    let again = ours.judge(&batch, &BY_CLIENT, &mut pending);
                    assert_eq!(again, judged, "{batch:?}");
                    if judged == Ok(None) {
                        ours.commit(pending).unwrap();
                    }
                }
                assert_eq!(ours.by_id(), plain.by_id(), "{batch:?}");
                assert_eq!(ours.snapshot(), plain.snapshot(), "{batch:?}");
                assert_eq!(ours.transactions, plain.transactions, "{batch:?}");
            }
        }
        assert!(short_ways > 1000, "{short_ways} of 20000");
    }
}
