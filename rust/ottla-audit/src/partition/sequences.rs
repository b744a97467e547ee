//! The sequence numbers of one producer, in a form that merges.
//!
//! A stored log is judged by *report, then adopt*: whatever a batch says becomes the state, so after
//! a few events the state no longer depends on what came before. A part of a log keeps that
//! dependent prefix, its *head*, and judges everything after it at once (see
//! `docs/kafka/producer-state.md`):
//!
//! ```text
//! head (≤ 1 marker + 5 batches, same epoch)     closed                    exit state
//! │ verdicts depend on the part to the left     │ verdicts are final      │ what the part to the right starts from
//! ```
//!
//! The head is closed right before the first event with another epoch (then only the epoch and the
//! holes matter) or right after the fifth batch (then the window of known batches is full).
//!
//! `holes` is the number of offsets missing from the log below a batch: every sequence number that
//! compaction removed took an offset with it, so a forward gap no larger than the holes since the
//! producer's last batch may be lawful, and a larger one cannot be.

use ottla_format::sequence::{REMEMBERED_BATCHES, increment_sequence};
use serde::{Deserialize, Serialize};

/// Batches of one epoch that a leader remembers for duplicates.
pub const WINDOW: usize = REMEMBERED_BATCHES;

/// One stored batch of a producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProducerEvent {
    /// Which segment of the partition, from 0.
    pub segment: u32,
    /// Bytes from the start of its file.
    pub position: u64,
    /// Bytes.
    pub size: u32,
    /// Base offset.
    pub offset: i64,
    /// Last offset minus base offset.
    pub offset_delta: i32,
    /// Records, as the header says.
    pub records: u32,
    /// Offsets missing below the batch, counted from the beginning of this part of the log.
    pub holes: i64,
    /// Max timestamp of the batch.
    pub timestamp: i64,
    /// Timestamp of the producer's previous event, if one is known.
    pub previous_timestamp: Option<i64>,
    /// Producer epoch.
    pub epoch: i16,
    /// What it is.
    pub kind: EventKind,
}

impl ProducerEvent {
    /// Last offset.
    pub fn last_offset(&self) -> i64 {
        self.offset.wrapping_add(self.offset_delta.into())
    }
}

/// What a batch of a producer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EventKind {
    /// Data.
    Data {
        /// First and last sequence; both −1 without one.
        sequences: (i32, i32),
        /// Part of a transaction.
        is_transactional: bool,
    },
    /// The end marker of a transaction.
    Marker {
        /// Epoch of the coordinator that wrote it.
        coordinator_epoch: i32,
        /// Commit or abort.
        is_commit: bool,
    },
}

/// What a batch proves, compared with the earlier batches of the same producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SequenceVerdict {
    /// Nothing is wrong.
    Fine,
    /// Starts above 0, and that many offsets were deleted from the head of the log.
    LegalHead,
    /// Starts above 0 although less was deleted.
    UnknownStart,
    /// An epoch below the previous one.
    EpochRegression {
        /// The previous epoch.
        previous: i16,
    },
    /// Sequences are missing, and compaction or damage can explain it.
    LegalCleaned,
    /// A new epoch that does not start at 0, and nothing explains it.
    NewEpochNonzero,
    /// One of the last five batches again.
    Duplicate,
    /// Sequences are missing.
    Gap {
        /// How many.
        missing: i32,
        /// The expected sequence.
        expected: i32,
    },
    /// Sequences that were stored already.
    Rewind {
        /// How far back.
        back: i32,
        /// The expected sequence.
        expected: i32,
    },
}

/// The state of a producer after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SequenceState {
    /// Epoch of the last event.
    pub epoch: i16,
    /// Last sequence of the epoch, −1 for none.
    pub last_sequence: i32,
    /// Sequences of the newest batches of the epoch, newest last.
    window: [(i32, i32); WINDOW],
    in_window: u8,
    /// Holes at the point after which sequences of the epoch may be missing.
    holes_from: i64,
    /// Holes at the last event.
    holes_last: i64,
}

/// Returns the sequence that must follow: 0 after none and after the largest.
fn following(last_sequence: i32) -> i32 {
    increment_sequence(last_sequence, 1)
}

impl SequenceState {
    fn known_epoch(epoch: i16, holes_last: i64) -> Self {
        Self {
            epoch,
            last_sequence: -1,
            window: [(-1, -1); WINDOW],
            in_window: 0,
            holes_from: holes_last,
            holes_last,
        }
    }

    /// Whether a batch of the epoch is known.
    pub fn has_batches(&self) -> bool {
        self.in_window > 0
    }

    fn remembers(&self, sequences: (i32, i32)) -> bool {
        self.window.iter().take(usize::from(self.in_window)).any(|&known| known == sequences)
    }

    /// Judges an event by the state before it; `None` for an unknown producer.
    pub fn judge(before: Option<&Self>, event: &ProducerEvent) -> SequenceVerdict {
        let data = match event.kind {
            EventKind::Data { sequences, .. } if sequences.0 >= 0 => Some(sequences),
            _ => None,
        };
        let Some(state) = before else {
            return match data {
                Some((first, _)) if first != 0 => {
                    if i64::from(first) <= event.holes {
                        SequenceVerdict::LegalHead
                    } else {
                        SequenceVerdict::UnknownStart
                    }
                }
                _ => SequenceVerdict::Fine,
            };
        };
        if event.epoch < state.epoch {
            return SequenceVerdict::EpochRegression { previous: state.epoch };
        }
        let Some(sequences) = data else { return SequenceVerdict::Fine };
        let first = sequences.0;
        if event.epoch > state.epoch {
            return if first == 0 {
                SequenceVerdict::Fine
            } else if i64::from(first) <= event.holes.saturating_sub(state.holes_last) {
                SequenceVerdict::LegalCleaned
            } else {
                SequenceVerdict::NewEpochNonzero
            };
        }
        let expected = following(state.last_sequence);
        let distance = first.wrapping_sub(expected) & i32::MAX;
        if distance == 0 {
            SequenceVerdict::Fine
        } else if state.remembers(sequences) {
            SequenceVerdict::Duplicate
        } else if i64::from(distance) <= event.holes.saturating_sub(state.holes_from) {
            SequenceVerdict::LegalCleaned
        } else if distance < 1 << 30 {
            SequenceVerdict::Gap { missing: distance, expected }
        } else {
            // 2^31 − distance, which fits: the distance is above 2^30.
            let back = i32::MAX.wrapping_sub(distance).wrapping_add(1);
            SequenceVerdict::Rewind { back, expected }
        }
    }

    /// Returns the state after an event: what the event says.
    #[must_use]
    pub fn adopt(before: Option<&Self>, event: &ProducerEvent) -> Self {
        let same = before.filter(|state| state.epoch == event.epoch);
        let mut state = same.copied().unwrap_or_else(|| Self {
            holes_from: before.map_or(0, |state| state.holes_last),
            ..Self::known_epoch(event.epoch, 0)
        });
        if let EventKind::Data { sequences, .. } = event.kind {
            state.last_sequence = sequences.1;
            state.holes_from = event.holes;
            if let Some(slot) = state.window.get_mut(usize::from(state.in_window)) {
                *slot = sequences;
                state.in_window = state.in_window.saturating_add(1);
            } else {
                let [oldest, ..] = &mut state.window;
                *oldest = sequences;
                state.window.rotate_left(1);
            }
        }
        state.holes_last = event.holes;
        state
    }

    fn shift(&mut self, holes: i64) {
        self.holes_from = self.holes_from.saturating_add(holes);
        self.holes_last = self.holes_last.saturating_add(holes);
    }
}

/// The sequences of one producer in one part of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sequences {
    head: Vec<ProducerEvent>,
    batches_in_head: u8,
    /// Holes at the last event, while the head is open.
    holes_last: i64,
    /// Boxed: most producers of a log with many never close their head.
    exit: Option<Box<SequenceState>>,
}

impl Sequences {
    /// Adds the next event; final verdicts go to `out`.
    pub fn observe(
        &mut self,
        event: ProducerEvent,
        out: &mut dyn FnMut(&ProducerEvent, SequenceVerdict),
    ) {
        if self.exit.is_none()
            && let Some(first) = self.head.first()
            && first.epoch != event.epoch
        {
            self.close(Some(SequenceState::known_epoch(first.epoch, self.holes_last)));
        }
        if let Some(state) = &mut self.exit {
            out(&event, SequenceState::judge(Some(state), &event));
            **state = SequenceState::adopt(Some(state), &event);
            return;
        }
        self.holes_last = event.holes;
        let is_data = matches!(event.kind, EventKind::Data { .. });
        if !is_data && !self.head.is_empty() {
            return;
        }
        // Most producers of a log with many have a batch or two: room is made for no more.
        self.head.reserve_exact(1);
        self.head.push(event);
        self.batches_in_head = self.batches_in_head.saturating_add(u8::from(is_data));
        if usize::from(self.batches_in_head) == WINDOW {
            self.close(judge_head(&self.head, &mut |_, _| {}));
        }
    }

    /// Ends the head: from here on nothing depends on what came before the part.
    fn close(&mut self, exit: Option<SequenceState>) {
        self.exit = exit.map(Box::new);
        self.holes_last = 0;
    }

    /// Moves the part to its place: `holes` more offsets are missing below it, and so many segments
    /// come before it.
    pub fn shift(&mut self, holes: i64, segments: u32, previous_timestamp: Option<i64>) {
        for event in &mut self.head {
            event.holes = event.holes.saturating_add(holes);
            event.segment = event.segment.saturating_add(segments);
        }
        if let Some(first) = self.head.first_mut() {
            first.previous_timestamp = first.previous_timestamp.or(previous_timestamp);
        }
        match &mut self.exit {
            Some(state) => state.shift(holes),
            None => self.holes_last = self.holes_last.saturating_add(holes),
        }
    }

    /// Appends the part to the right, which was moved to its place.
    pub fn append(&mut self, right: &Self, out: &mut dyn FnMut(&ProducerEvent, SequenceVerdict)) {
        for &event in &right.head {
            self.observe(event, out);
        }
        if let Some(exit) = right.exit.as_deref() {
            self.close(Some(*exit));
        } else if let Some(state) = &mut self.exit {
            state.holes_last = state.holes_last.max(right.holes_last);
        } else {
            self.holes_last = right.holes_last;
        }
    }

    /// Ends the merge, with nothing to the left: judges the head and returns the final state.
    pub fn finish(
        &self,
        out: &mut dyn FnMut(&ProducerEvent, SequenceVerdict),
    ) -> Option<SequenceState> {
        let judged = judge_head(&self.head, out);
        self.exit.as_deref().copied().or(judged)
    }
}

/// Judges events with nothing to the left; returns the state after them.
pub(crate) fn judge_head(
    head: &[ProducerEvent],
    out: &mut dyn FnMut(&ProducerEvent, SequenceVerdict),
) -> Option<SequenceState> {
    let mut state = None;
    for event in head {
        out(event, SequenceState::judge(state.as_ref(), event));
        state = Some(SequenceState::adopt(state.as_ref(), event));
    }
    state
}
