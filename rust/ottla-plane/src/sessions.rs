//! Fetch sessions (KIP-227): what a client has asked for and was told, so that it repeats neither.
//!
//! ```text
//! epoch 0 ─▸ full answer, a new session ─▸ epoch 1 ─▸ what changed ─▸ epoch 2 ─▸ … ─▸ epoch −1: closed
//! ```
//!
//! * A session answers exactly the epoch that follows; 70 and 71 make the client begin anew.
//! * The epoch moves on when a request is answered, not while it waits: the same frame may be
//!   handed over again.
//! * Partitions that gave records go behind those that did not, so that none starves.
//! * There are at most [`MAX_FETCH_SESSIONS`] and [`MAX_SESSION_PARTITIONS`]; a new session takes the
//!   place of one that is idle, or smaller and no longer new, and otherwise is not begun.

use crate::limits::{MAX_FETCH_SESSIONS, MAX_SESSION_PARTITIONS, MIN_SESSION_EVICTION_MS};
use crate::wire::fetch::{BY_ID, FetchAnswer, FetchPartition, FetchRequest};
use crate::wire::{TopicId, TopicKey};
use ottla_format::error_code::ErrorCode;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// The epoch of a request that begins a session.
const INITIAL_EPOCH: i32 = 0;
/// The epoch of a request that ends one.
const FINAL_EPOCH: i32 = -1;

/// A topic that a session keeps.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum SessionTopic {
    Name(Arc<[u8]>),
    Id(TopicId),
}

impl From<TopicKey<'_>> for SessionTopic {
    fn from(key: TopicKey<'_>) -> Self {
        match key {
            TopicKey::Name(name) => Self::Name(name.into()),
            TopicKey::Id(id) => Self::Id(id),
        }
    }
}

impl SessionTopic {
    pub(crate) fn key(&self) -> TopicKey<'_> {
        match self {
            Self::Name(name) => TopicKey::Name(name),
            Self::Id(id) => TopicKey::Id(*id),
        }
    }
}

/// A partition of a session.
#[derive(Clone, Debug)]
pub(crate) struct SessionPartition {
    pub(crate) topic: SessionTopic,
    pub(crate) asked: FetchPartition,
    /// What the client was told last.
    high_watermark: i64,
    log_start_offset: i64,
}

impl SessionPartition {
    /// Whether an answer tells the client anything new.
    pub(crate) fn is_news(&self, answer: &FetchAnswer, records: u64) -> bool {
        records > 0
            || answer.error_code != 0
            || answer.diverging_epoch.is_some()
            || answer.high_watermark != self.high_watermark
            || answer.log_start_offset != self.log_start_offset
    }

    fn told(&mut self, answer: &FetchAnswer) {
        // An error is told again until it is over, and what comes then in any case.
        self.high_watermark = if answer.error_code == 0 { answer.high_watermark } else { -1 };
        self.log_start_offset = answer.log_start_offset;
    }
}

/// A session.
#[derive(Debug)]
struct Session {
    epoch: i32,
    uses_ids: bool,
    is_follower: bool,
    created_ms: i64,
    used_ms: i64,
    /// In the order in which they are read.
    partitions: Vec<SessionPartition>,
    places: HashMap<(SessionTopic, i32), usize>,
}

/// Of which session a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Context {
    /// None; everything that it names is answered.
    Sessionless,
    /// The same, and a session is to be begun.
    Begin,
    /// Of this one; what has changed is answered.
    Incremental(i32),
    /// Of one that is not there, or in another state.
    Refused(ErrorCode),
}

/// All sessions.
#[derive(Debug)]
pub(crate) struct Sessions {
    by_id: HashMap<i32, Session>,
    /// By the time of their last use.
    by_use: BTreeSet<(i64, i32)>,
    partitions: usize,
    last_id: u32,
}

impl Sessions {
    pub(crate) fn new(seed: u32) -> Self {
        let last_id = seed.wrapping_mul(0x85eb_ca6b);
        Self { by_id: HashMap::new(), by_use: BTreeSet::new(), partitions: 0, last_id }
    }

    /// Finds the session of a request, and has it adopt what is asked.
    pub(crate) fn context(&mut self, request: &FetchRequest<'_>, now_ms: i64) -> Context {
        let id = request.session_id;
        if matches!(request.session_epoch, INITIAL_EPOCH | FINAL_EPOCH) {
            self.close(id);
            let begins = request.session_epoch == INITIAL_EPOCH;
            return if begins { Context::Begin } else { Context::Sessionless };
        }
        let Some(session) = self.by_id.get_mut(&id) else {
            return Context::Refused(ErrorCode::FetchSessionIdNotFound);
        };
        if session.epoch != request.session_epoch {
            return Context::Refused(ErrorCode::InvalidFetchSessionEpoch);
        }
        if session.uses_ids != (request.version >= BY_ID) {
            return Context::Refused(ErrorCode::FetchSessionTopicIdError);
        }
        let before = session.partitions.len();
        session.adopt(request);
        let after = session.partitions.len();
        self.partitions = self.partitions.saturating_sub(before).saturating_add(after);
        if after == 0 || self.partitions > MAX_SESSION_PARTITIONS {
            self.close(id);
            let is_over = after == 0;
            let error = ErrorCode::FetchSessionIdNotFound;
            return if is_over { Context::Sessionless } else { Context::Refused(error) };
        }
        self.by_use.remove(&(session.used_ms, id));
        session.used_ms = now_ms;
        self.by_use.insert((now_ms, id));
        Context::Incremental(id)
    }

    /// The partitions of a session, in the order in which they are read.
    pub(crate) fn partitions(&self, id: i32) -> &[SessionPartition] {
        self.by_id.get(&id).map_or(&[], |session| &session.partitions)
    }

    /// A request of a session is answered with these, one for each of its partitions.
    pub(crate) fn answered<'a>(
        &mut self,
        id: i32,
        answers: impl Iterator<Item = (&'a FetchAnswer, u64)>,
    ) {
        let Some(session) = self.by_id.get_mut(&id) else { return };
        session.epoch = next_epoch(session.epoch);
        session.answered(answers);
    }

    /// Begins a session of what a request names, which was answered in full. Returns its id, or 0
    /// where there is no room for it.
    pub(crate) fn begin<'a>(
        &mut self,
        request: &FetchRequest<'_>,
        answers: impl Iterator<Item = (&'a FetchAnswer, u64)>,
        now_ms: i64,
    ) -> i32 {
        let is_follower = request.replica_id >= 0;
        let size = request.partitions.len();
        let has_room = self.partitions.saturating_add(size) <= MAX_SESSION_PARTITIONS;
        if size == 0 || !has_room || !self.make_room(is_follower, size, now_ms) {
            return 0;
        }
        let mut session = Session {
            epoch: next_epoch(INITIAL_EPOCH),
            uses_ids: request.version >= BY_ID,
            is_follower,
            created_ms: now_ms,
            used_ms: now_ms,
            partitions: Vec::new(),
            places: HashMap::new(),
        };
        session.adopt(request);
        // A partition that is named twice has one place, and so no order of answers.
        if session.partitions.len() == size {
            session.answered(answers);
        }
        let id = self.new_id();
        self.partitions = self.partitions.saturating_add(session.partitions.len());
        self.by_use.insert((now_ms, id));
        self.by_id.insert(id, session);
        id
    }

    /// Ends a session, if there is one of this id.
    fn close(&mut self, id: i32) {
        if let Some(session) = self.by_id.remove(&id) {
            self.by_use.remove(&(session.used_ms, id));
            self.partitions = self.partitions.saturating_sub(session.partitions.len());
        }
    }

    /// An id that no session has: multiples of an odd number run through all numbers.
    fn new_id(&mut self) -> i32 {
        loop {
            self.last_id = self.last_id.wrapping_add(0x9e37_79b1);
            let id = (self.last_id >> 1) as i32;
            if id != 0 && !self.by_id.contains_key(&id) {
                return id;
            }
        }
    }

    /// Whether one more session fits, perhaps in the place of another.
    fn make_room(&mut self, is_follower: bool, size: usize, now_ms: i64) -> bool {
        if self.by_id.len() < MAX_FETCH_SESSIONS {
            return true;
        }
        let is_idle = |used_ms: i64| now_ms.saturating_sub(used_ms) > MIN_SESSION_EVICTION_MS;
        let idle = self.by_use.first().filter(|(used_ms, _)| is_idle(*used_ms)).map(|&(_, id)| id);
        let evicted = idle.or_else(|| self.smaller(is_follower, size, now_ms));
        evicted.is_some_and(|id| {
            self.close(id);
            true
        })
    }

    /// The least session that one of so many partitions may take the place of: followers come before
    /// consumers, and of either the larger one before one that had its time.
    fn smaller(&self, is_follower: bool, size: usize, now_ms: i64) -> Option<i32> {
        let candidates = self.by_id.iter().filter(|(_, session)| {
            let had_its_time = now_ms.saturating_sub(session.created_ms) > MIN_SESSION_EVICTION_MS;
            had_its_time || is_follower && !session.is_follower
        });
        let rank = |session: &Session| (session.is_follower, session.partitions.len());
        let (&id, least) = candidates.min_by_key(|(id, session)| (rank(session), **id))?;
        (rank(least) < (is_follower, size)).then_some(id)
    }
}

impl Session {
    /// Adds what a request names, changes what it names again, and drops what it forgets.
    fn adopt(&mut self, request: &FetchRequest<'_>) {
        for topic in &request.topics {
            let topic_key = SessionTopic::from(topic.key);
            for asked in request.of(topic) {
                let known = self.places.get(&(topic_key.clone(), asked.index));
                if let Some(partition) = known.and_then(|&at| self.partitions.get_mut(at)) {
                    partition.asked = *asked;
                    continue;
                }
                self.places.insert((topic_key.clone(), asked.index), self.partitions.len());
                self.partitions.push(SessionPartition {
                    topic: topic_key.clone(),
                    asked: *asked,
                    high_watermark: -1,
                    log_start_offset: -1,
                });
            }
        }
        if !request.forgotten.is_empty() {
            for (key, index) in &request.forgotten {
                self.places.remove(&((*key).into(), *index));
            }
            let places = &self.places;
            self.partitions.retain(|partition| {
                places.contains_key(&(partition.topic.clone(), partition.asked.index))
            });
            self.renumber();
        }
    }

    /// What was told, in the order of the partitions; those that gave records go to the end.
    fn answered<'a>(&mut self, answers: impl Iterator<Item = (&'a FetchAnswer, u64)>) {
        let mut gave = Vec::with_capacity(self.partitions.len());
        for (partition, (answer, records)) in self.partitions.iter_mut().zip(answers) {
            if partition.is_news(answer, records) {
                partition.told(answer);
            }
            gave.push(records > 0);
        }
        if gave.contains(&true) && gave.contains(&false) {
            let (mut first, mut behind) = (Vec::with_capacity(gave.len()), Vec::new());
            let all = std::mem::take(&mut self.partitions);
            for (number, partition) in all.into_iter().enumerate() {
                let is_last = gave.get(number) == Some(&true);
                if is_last { behind.push(partition) } else { first.push(partition) }
            }
            first.append(&mut behind);
            self.partitions = first;
            self.renumber();
        }
    }

    fn renumber(&mut self) {
        for (at, partition) in self.partitions.iter().enumerate() {
            let key = (partition.topic.clone(), partition.asked.index);
            self.places.insert(key, at);
        }
    }
}

fn next_epoch(epoch: i32) -> i32 {
    epoch.checked_add(1).unwrap_or(1)
}
