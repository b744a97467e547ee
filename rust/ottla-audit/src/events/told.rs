//! Findings as events tell of them, and the partition that they are about.

use crate::catalogue::message::Message;
use crate::traces::Fault;
use ottla_log::names::{FileKind, FileName, FileState};

/// A finding as events tell of it.
#[derive(Clone, Debug)]
pub struct Told<'a> {
    /// What it is, and where.
    pub fault: Fault<'a>,
    /// It in a sentence.
    pub message: &'a Message,
    /// Where consumers can go on.
    pub next_good_offset: Option<i64>,
}

/// The partition that an event is about.
#[derive(Clone, Copy, Debug)]
pub struct EventLog<'a> {
    /// Its directory.
    pub directory: &'a [u8],
    /// Its topic, as far as its name tells.
    pub topic: Option<&'a str>,
    /// Its number, likewise.
    pub partition: Option<i32>,
    /// The segment that held its lost end, by [`missing_segment`].
    pub missing_segment: Option<i64>,
}

/// The base offset of the segment that held a lost end, if other files of these names show it.
pub fn missing_segment<'n>(
    lost_end: (i64, i64),
    names: impl IntoIterator<Item = &'n [u8]>,
) -> Option<i64> {
    let (first, _) = lost_end;
    let names = names.into_iter().map(FileName::parse);
    let beside = names.filter(|name| name.base_offset == Some(first));
    let live: Vec<FileKind> =
        beside.filter(|name| name.state == FileState::Live).map(|name| name.kind).collect();
    (!live.is_empty() && !live.contains(&FileKind::Segment)).then_some(first)
}
