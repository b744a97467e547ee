//! The checkpoint files of a log directory and of a partition (`CheckpointFile`): a version, the
//! number of entries, and one entry a line.
//!
//! ```text
//! 0                                  0
//! 2                                  2
//! orders 0 42                        0 0
//! orders 1 7                         2 79
//! topic partition offset             epoch start offset
//! ```

use super::text::{TextError, TextFault, fields, lines, number, text};

/// The one version of these files.
const VERSION: i32 = 0;

/// The line of the first entry, after the version and the number of entries.
const FIRST_ENTRY_LINE: usize = 3;

/// An entry of `recovery-point-offset-checkpoint`, `log-start-offset-checkpoint`,
/// `replication-offset-checkpoint` or `cleaner-offset-checkpoint`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // Kafka's own names
pub struct OffsetCheckpoint {
    pub topic: String,
    pub partition: i32,
    pub offset: i64,
}

/// An entry of `leader-epoch-checkpoint`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaderEpoch {
    /// Epoch of a leader.
    pub epoch: i32,
    /// Offset of the first record it wrote.
    pub start_offset: i64,
}

/// Reads an offset checkpoint. An empty file has no entries.
///
/// # Errors
/// What Kafka does not read, and [`TextFault::CountMissing`].
///
/// # Examples
/// ```
/// use ottla_log::sidefiles::checkpoint::read_offset_checkpoint;
///
/// let entries = read_offset_checkpoint(b"0\n1\norders 3 42\n").unwrap();
/// assert_eq!((entries[0].topic.as_str(), entries[0].offset), ("orders", 42));
/// ```
pub fn read_offset_checkpoint(data: &[u8]) -> Result<Vec<OffsetCheckpoint>, TextError> {
    read(data, "topic partition offset", |fields, line| match *fields {
        [topic, partition, offset] => Some((|| {
            Ok(OffsetCheckpoint {
                topic: topic.to_owned(),
                partition: number(partition, line)?,
                offset: number(offset, line)?,
            })
        })()),
        _ => None,
    })
}

/// Reads a leader-epoch checkpoint, whatever the order of its entries.
///
/// # Errors
/// What Kafka does not read, and [`TextFault::CountMissing`].
pub fn read_leader_epochs(data: &[u8]) -> Result<Vec<LeaderEpoch>, TextError> {
    read(data, "epoch start offset", |fields, line| match *fields {
        [epoch, start_offset] => Some((|| {
            Ok(LeaderEpoch {
                epoch: number(epoch, line)?,
                start_offset: number(start_offset, line)?,
            })
        })()),
        _ => None,
    })
}

/// The bytes of an offset checkpoint.
///
/// # Examples
/// ```
/// use ottla_log::sidefiles::checkpoint::{OffsetCheckpoint, write_offset_checkpoint};
///
/// let entry = OffsetCheckpoint { topic: "orders".to_owned(), partition: 3, offset: 42 };
/// assert_eq!(write_offset_checkpoint(&[entry]), b"0\n1\norders 3 42\n");
/// ```
pub fn write_offset_checkpoint(entries: &[OffsetCheckpoint]) -> Vec<u8> {
    write(entries, |entry| format!("{} {} {}\n", entry.topic, entry.partition, entry.offset))
}

/// The bytes of a leader-epoch checkpoint.
///
/// # Examples
/// ```
/// use ottla_log::sidefiles::checkpoint::{LeaderEpoch, write_leader_epochs};
///
/// let entries = [LeaderEpoch { epoch: 0, start_offset: 0 }, LeaderEpoch { epoch: 2, start_offset: 79 }];
/// assert_eq!(write_leader_epochs(&entries), b"0\n2\n0 0\n2 79\n");
/// ```
pub fn write_leader_epochs(epochs: &[LeaderEpoch]) -> Vec<u8> {
    write(epochs, |entry| format!("{} {}\n", entry.epoch, entry.start_offset))
}

/// Whether epochs and start offsets both increase, as Kafka writes them. It reads others too and
/// drops entries until they do, but a broker does not start with one that is negative.
///
/// # Errors
/// [`TextFault::Entry`] or [`TextFault::Order`] with the line of the first entry at fault.
pub fn check_order(epochs: &[LeaderEpoch]) -> Result<(), TextError> {
    for (line, entry) in (FIRST_ENTRY_LINE..).zip(epochs) {
        if entry.epoch < 0 || entry.start_offset < 0 {
            let expected = "an epoch and a start offset of 0 or more".to_owned();
            let found = format!("{} {}", entry.epoch, entry.start_offset);
            return Err(TextError::new(TextFault::Entry, line, expected).found(&found));
        }
    }
    for (line, pair) in (FIRST_ENTRY_LINE.saturating_add(1)..).zip(epochs.windows(2)) {
        let [before, entry] = *pair else { continue };
        if entry.epoch <= before.epoch || entry.start_offset <= before.start_offset {
            let expected =
                format!("an epoch above {} starting after {}", before.epoch, before.start_offset);
            let found = format!("epoch {} starting at {}", entry.epoch, entry.start_offset);
            return Err(TextError::new(TextFault::Order, line, expected).found(&found));
        }
    }
    Ok(())
}

fn write<T>(entries: &[T], line: impl Fn(&T) -> String) -> Vec<u8> {
    let lines: Vec<String> = entries.iter().map(line).collect();
    format!("{VERSION}\n{}\n{}", entries.len(), lines.concat()).into_bytes()
}

fn read<T>(
    data: &[u8],
    form: &str,
    entry: impl Fn(&[&str], usize) -> Option<Result<T, TextError>>,
) -> Result<Vec<T>, TextError> {
    let mut lines = lines(text(data)?);
    let Some(version) = lines.next() else { return Ok(Vec::new()) };
    if version.parse() != Ok(VERSION) {
        let expected = format!("version {VERSION}");
        return Err(TextError::new(TextFault::Version, 1, expected).found(version));
    }
    let expected = "the number of entries";
    let Some(counted) = lines.next() else {
        return Err(TextError::new(TextFault::CountMissing, 2, expected));
    };
    let count: i32 = counted
        .parse()
        .map_err(|_| TextError::new(TextFault::Count, 2, expected).found(counted))?;
    let mut entries = Vec::new();
    for (number, line) in (FIRST_ENTRY_LINE..).zip(lines) {
        let read = entry(&fields(line), number)
            .ok_or_else(|| TextError::new(TextFault::Entry, number, form).found(line))?;
        entries.push(read?);
    }
    if usize::try_from(count) != Ok(entries.len()) {
        let expected = format!("{count} entries");
        let found = format!("{} entries", entries.len());
        return Err(TextError::new(TextFault::WrongCount, 2, expected).found(&found));
    }
    Ok(entries)
}
