//! Fetch: whole batches of each partition, in one answer of bounded size
//! (KIP-74, KIP-98, KIP-227, KIP-320, KIP-595).

use crate::limits::MAX_FETCH_BYTES;
use crate::log::partition_log::Span;
use crate::partition::Partition;
use crate::plane::DataPlane;
use crate::produce::unknown;
use crate::sessions::{Context, SessionPartition, SessionTopic};
use crate::topics::{Handle, Refused};
use crate::wire::fetch::{FetchAnswer, FetchPartition, FetchRequest, FetchWriter};
use crate::wire::malformed::MalformedFrame;
use crate::wire::{Sink, TopicKey};
use ottla_format::error_code::ErrorCode;
use ottla_log::sorting::{sort_by, sort_by_key};

/// The code of a partition epoch that is another (KIP-232), told to those that name one.
const INVALID_PARTITION_EPOCH: i16 = 12320;

/// What is said of a Fetch beside its frame.
#[derive(Clone, Copy, Debug)]
pub struct FetchCall<'a> {
    /// The broker's clock.
    pub now_ms: i64,
    /// Whether it is answered even if there is too little: its time is up.
    pub must_answer: bool,
    /// Partitions that are refused whatever is asked of them.
    pub refused: &'a Refused,
}

/// What became of a Fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fetched {
    /// It is answered.
    Answered {
        /// The distinct error codes of the answer, ascending, without 0.
        errors: Vec<i16>,
    },
    /// There is too little to read yet. Nothing is changed: the same frame is handed over again.
    Wait {
        /// Partitions of which one may get more.
        handles: Vec<Handle>,
        /// How long the client waits.
        max_wait_ms: i32,
    },
}

/// A partition that is read.
struct Reading<'a> {
    key: TopicKey<'a>,
    asked: FetchPartition,
}

/// What was found of a partition.
struct Found {
    handle: Option<Handle>,
    answer: FetchAnswer,
    span: Span,
}

impl Found {
    fn error(index: i32, error_code: i16) -> Self {
        let answer = FetchAnswer {
            index,
            error_code,
            high_watermark: -1,
            last_stable_offset: -1,
            log_start_offset: -1,
            diverging_epoch: None,
            aborted_transactions: None,
            partition_epoch: -1,
        };
        Self { handle: None, answer, span: Span::default() }
    }

    fn told(&self) -> (&FetchAnswer, u64) {
        (&self.answer, self.span.size())
    }
}

/// How much may be read of a partition.
#[derive(Clone, Copy)]
struct Allowance {
    bytes: u64,
    must_progress: bool,
}

impl DataPlane {
    /// Reads what a request asks for, and gives the body of its answer to `sink`.
    ///
    /// # Errors
    /// [`MalformedFrame`].
    pub fn fetch<S: Sink>(
        &mut self,
        frame: &[u8],
        position: usize,
        version: i16,
        call: &FetchCall<'_>,
        sink: &mut S,
    ) -> Result<Fetched, MalformedFrame> {
        let request = FetchRequest::read(frame, position, version)?;
        let context = self.sessions.context(&request, call.now_ms);
        if let Context::Refused(error) = context {
            FetchWriter::new(sink, version, error.code(), 0, 0).finish();
            return Ok(Fetched::Answered { errors: vec![error.code()] });
        }
        let found = match context {
            Context::Incremental(id) => {
                let readings = self.sessions.partitions(id).iter().map(reading_of);
                self.read_all(&request, readings, call)
            }
            _ => self.read_all(&request, readings_of(&request), call),
        };
        if let Some(waiting) = waiting(&request, &found, call) {
            return Ok(waiting);
        }
        let (session_id, included) = self.included(&request, context, &found, call);
        self.write_answer(&request, context, session_id, &included, sink);
        let errors = errors_of(&included);
        if let Context::Incremental(id) = context {
            self.sessions.answered(id, found.iter().map(Found::told));
        }
        Ok(Fetched::Answered { errors })
    }

    /// The topics, by name, and partitions that a session has: a request of it does not repeat them.
    pub fn fetch_session(&self, id: i32) -> Vec<(String, i32)> {
        let named = |known: &SessionPartition| {
            let name = match known.topic.key() {
                TopicKey::Name(name) => name,
                key @ TopicKey::Id(_) => &*self.topics.find(key)?.name,
            };
            Some((String::from_utf8_lossy(name).into_owned(), known.asked.index))
        };
        self.sessions.partitions(id).iter().filter_map(named).collect()
    }

    /// Reads partitions in their order, each as much as those before it have left.
    fn read_all<'a>(
        &self,
        request: &FetchRequest<'_>,
        readings: impl Iterator<Item = Reading<'a>>,
        call: &FetchCall<'_>,
    ) -> Vec<Found> {
        let limit = u64::try_from(request.max_bytes).unwrap_or(0).min(MAX_FETCH_BYTES);
        let mut left = Allowance { bytes: limit, must_progress: true };
        readings
            .map(|reading| {
                let found = self.read_one(request, &reading, call.refused, left);
                let size = found.span.size();
                left.bytes = left.bytes.saturating_sub(size);
                left.must_progress &= size == 0;
                found
            })
            .collect()
    }

    fn read_one(
        &self,
        request: &FetchRequest<'_>,
        reading: &Reading<'_>,
        refused: &Refused,
        left: Allowance,
    ) -> Found {
        let Reading { key, asked } = reading;
        let topic = self.topics.find(*key);
        let name = topic.map(|topic| &*topic.name).or(match key {
            TopicKey::Name(name) => Some(*name),
            TopicKey::Id(_) => None,
        });
        if let Some(code) = name.and_then(|name| refused.code(name, asked.index)) {
            return Found::error(asked.index, code);
        }
        let handle = topic.and_then(|topic| topic.partition(asked.index));
        let place = handle.and_then(|handle| Some((handle, self.partition(handle)?)));
        let Some((handle, partition)) = place else {
            return Found::error(asked.index, unknown(*key, topic.is_some()).code());
        };
        read_partition(request, asked, partition, left).map_or_else(
            |code| Found::error(asked.index, code),
            |(answer, span)| Found { handle: Some(handle), answer, span },
        )
    }

    /// The session of the answer, and which of the partitions are in it.
    fn included<'f>(
        &mut self,
        request: &FetchRequest<'_>,
        context: Context,
        found: &'f [Found],
        call: &FetchCall<'_>,
    ) -> (i32, Vec<(usize, &'f Found)>) {
        let numbered = found.iter().enumerate();
        match context {
            Context::Incremental(id) => {
                let partitions = self.sessions.partitions(id);
                let news = numbered.filter(|(number, found)| {
                    let (answer, records) = found.told();
                    partitions.get(*number).is_some_and(|known| known.is_news(answer, records))
                });
                (id, news.collect())
            }
            Context::Begin => {
                let told = found.iter().map(Found::told);
                (self.sessions.begin(request, told, call.now_ms), numbered.collect())
            }
            _ => (0, numbered.collect()),
        }
    }

    fn write_answer<S: Sink>(
        &self,
        request: &FetchRequest<'_>,
        context: Context,
        session_id: i32,
        included: &[(usize, &Found)],
        sink: &mut S,
    ) {
        let topics: Vec<TopicKey<'_>> = match context {
            Context::Incremental(id) => {
                let partitions = self.sessions.partitions(id);
                let of = |number: usize| partitions.get(number).map(|known| known.topic.key());
                included.iter().filter_map(|(number, _)| of(*number)).collect()
            }
            _ => readings_of(request).map(|reading| reading.key).collect(),
        };
        let runs = topics.chunk_by(|one, next| one == next);
        let mut writer =
            FetchWriter::new(sink, request.version, 0, session_id, runs.clone().count());
        let mut rest = included;
        for run in runs {
            let (here, behind) = rest.split_at_checked(run.len()).unwrap_or((rest, &[]));
            rest = behind;
            let Some(key) = run.first() else { continue };
            writer.begin_topic(*key, here.len());
            for (_, found) in here {
                self.write_partition(found, &mut writer);
            }
            writer.end_topic();
        }
        writer.finish();
    }

    fn write_partition<S: Sink>(&self, found: &Found, writer: &mut FetchWriter<'_, S>) {
        writer.begin_partition(&found.answer, found.span.size());
        let partition = found.handle.and_then(|handle| self.partition(handle));
        if let Some(partition) = partition {
            let sink = writer.sink();
            let mut left = found.span.size();
            let given = partition.log.give(&found.span, &mut |slice| {
                left = left.saturating_sub(slice.len() as u64);
                sink.records(slice);
            });
            if partition.watch(given).is_err() {
                // The size is told already. No client takes zeros for a batch.
                let missing = sink.buffer().len().saturating_add(left as usize);
                sink.buffer().resize(missing, 0);
            }
        }
        writer.end_partition(&found.answer);
    }
}

fn readings_of<'a>(request: &'a FetchRequest<'a>) -> impl Iterator<Item = Reading<'a>> {
    request.topics.iter().flat_map(|topic| {
        request.of(topic).iter().map(|asked| Reading { key: topic.key, asked: *asked })
    })
}

fn reading_of(partition: &SessionPartition) -> Reading<'_> {
    let topic: &SessionTopic = &partition.topic;
    Reading { key: topic.key(), asked: partition.asked }
}

/// The distinct errors of what is answered, ascending.
fn errors_of(included: &[(usize, &Found)]) -> Vec<i16> {
    let codes = included.iter().map(|(_, found)| found.answer.error_code);
    let mut errors: Vec<i16> = codes.filter(|code| *code != 0).collect();
    sort_by(&mut errors, Ord::cmp);
    errors.dedup();
    errors
}

/// Whether there is too little, and the client has time.
fn waiting(request: &FetchRequest<'_>, found: &[Found], call: &FetchCall<'_>) -> Option<Fetched> {
    if call.must_answer || request.max_wait_ms <= 0 || found.is_empty() {
        return None;
    }
    let is_told =
        |found: &Found| found.answer.error_code != 0 || found.answer.diverging_epoch.is_some();
    let size = found.iter().fold(0u64, |sum, found| sum.saturating_add(found.span.size()));
    let wanted = request.min_bytes.min(request.max_bytes);
    if found.iter().any(is_told) || i64::try_from(size).is_ok_and(|size| size >= wanted.into()) {
        return None;
    }
    let handles = found.iter().filter_map(|found| found.handle).collect();
    Some(Fetched::Wait { handles, max_wait_ms: request.max_wait_ms })
}

/// Reads one partition, or tells the error that it is answered with.
fn read_partition(
    request: &FetchRequest<'_>,
    asked: &FetchPartition,
    partition: &Partition,
    left: Allowance,
) -> Result<(FetchAnswer, Span), i16> {
    let refused = |error: ErrorCode| Err(error.code());
    let settings = &partition.settings;
    let expected = asked.expected_partition_epoch;
    if expected >= 0 && expected != settings.partition_epoch {
        return Err(INVALID_PARTITION_EPOCH);
    }
    partition.check_leader_epoch(asked.current_leader_epoch).map_err(ErrorCode::code)?;
    if partition.is_offline() {
        return refused(ErrorCode::KafkaStorageError);
    }
    let offsets = partition.offsets();
    let mut answer = FetchAnswer {
        index: asked.index,
        error_code: 0,
        high_watermark: offsets.high_watermark,
        last_stable_offset: offsets.last_stable_offset,
        log_start_offset: offsets.log_start_offset,
        diverging_epoch: None,
        aborted_transactions: request.is_read_committed.then(Vec::new),
        partition_epoch: settings.partition_epoch,
    };
    let fetch_offset = asked.fetch_offset;
    if asked.last_fetched_epoch >= 0 {
        let end = partition.epochs.end_of(asked.last_fetched_epoch, offsets.log_end_offset);
        let Some((epoch, end_offset)) = end else { return refused(ErrorCode::OffsetOutOfRange) };
        if epoch < asked.last_fetched_epoch || end_offset < fetch_offset {
            answer.diverging_epoch = Some((epoch, end_offset));
            return Ok((answer, Span::default()));
        }
    }
    if !(offsets.log_start_offset..=offsets.log_end_offset).contains(&fetch_offset) {
        return refused(ErrorCode::OffsetOutOfRange);
    }
    let before_offset = if request.replica_id >= 0 {
        offsets.log_end_offset
    } else if request.is_read_committed {
        offsets.last_stable_offset
    } else {
        offsets.high_watermark
    };
    let max_bytes = u64::try_from(asked.max_bytes).unwrap_or(0).min(left.bytes);
    let read = partition.log.read(fetch_offset, before_offset, max_bytes, left.must_progress);
    let Ok(span) = partition.watch(read) else { return refused(ErrorCode::KafkaStorageError) };
    if let Some(aborted) = &mut answer.aborted_transactions
        && span.size() > 0
    {
        *aborted = partition.leader.state().aborted_between(fetch_offset, span.next_offset);
        sort_by_key(aborted, |transaction| transaction.first_offset);
    }
    Ok((answer, span))
}
