//! What a directory is by the names of its files.

use super::digits::{EPOCH_DIGITS, OFFSET_DIGITS};
use super::file::FileKind;

/// What a directory is by the files in it. Its own name may deceive: `broker-1` can be partition 1
/// of the topic `broker` or the log directory of a broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectoryKind {
    /// It holds files that Kafka puts into a log directory.
    LogDirectory,
    /// It holds files that Kafka puts into a partition's directory.
    Partition,
    /// It holds none of these.
    Unknown,
}

impl DirectoryKind {
    /// Stable kebab-case name.
    pub fn name(self) -> &'static str {
        match self {
            Self::LogDirectory => "log-directory",
            Self::Partition => "partition",
            Self::Unknown => "unknown",
        }
    }

    /// The kind of a directory that holds files of these names.
    pub fn of<'a>(names: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut kind = Self::Unknown;
        for name in names {
            if marks_log_directory(name) {
                return Self::LogDirectory;
            }
            if kind == Self::Unknown && marks_partition(name) {
                kind = Self::Partition;
            }
        }
        kind
    }
}

/// Whether a file is found in log directories alone. A `.lock` says nothing: other programs leave
/// such files, too.
fn marks_log_directory(name: &[u8]) -> bool {
    FileKind::in_log_directory(name).is_some_and(|kind| kind != FileKind::Lock)
}

/// Whether a file is found in partitions alone. Of a number the digits count that Kafka writes: a
/// `2024.log` is nobody's segment.
fn marks_partition(name: &[u8]) -> bool {
    if FileKind::in_partition(name).is_some() {
        return true;
    }
    let all_digits = |digits: &[u8]| digits.iter().all(u8::is_ascii_digit);
    let Some((offset, rest)) = name.split_at_checked(OFFSET_DIGITS) else { return false };
    let rest = rest
        .strip_prefix(b"-")
        .and_then(|rest| rest.split_at_checked(EPOCH_DIGITS))
        .filter(|(epoch, _)| all_digits(epoch))
        .map_or(rest, |(_, rest)| rest);
    all_digits(offset) && matches!(rest, [b'.', b'a'..=b'z', ..])
}
