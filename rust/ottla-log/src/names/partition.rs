//! What the name of a partition's directory says.

use super::constants::REMOTE_INDEX_CACHE;

/// Characters of the id in the name of a directory that is being deleted or moved.
const ID_CHARACTERS: usize = 32;

/// Whether a partition's directory is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartitionState {
    /// It is.
    Live,
    /// It is to be deleted.
    Delete,
    /// It is being moved here from another log directory.
    Future,
    /// The broker was not assigned the partition.
    Stray,
}

impl PartitionState {
    const ALL: [Self; 4] = [Self::Live, Self::Delete, Self::Future, Self::Stray];

    /// Stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Delete => "delete",
            Self::Future => "future",
            Self::Stray => "stray",
        }
    }

    /// The state of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    /// How the name of such a directory ends: empty for one in use.
    pub fn suffix(self) -> &'static [u8] {
        match self {
            Self::Live => b"",
            Self::Delete => b"-delete",
            Self::Future => b"-future",
            Self::Stray => b"-stray",
        }
    }
}

/// The most characters of a name.
const MAX_NAME_CHARACTERS: usize = 255;

/// What the name of a partition's directory says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionName<'a> {
    /// The topic. In names that end in `-delete` or `-stray` Kafka cuts it so that the whole fits
    /// 255 characters.
    pub topic: &'a [u8],
    /// The number of the partition.
    pub partition: i32,
    /// Whether the directory is in use.
    pub state: PartitionState,
}

impl<'a> PartitionName<'a> {
    /// Reads a name as Kafka does (`UnifiedLog.parseTopicPartitionName`); `None` if it is no partition's.
    ///
    /// # Examples
    /// ```
    /// use ottla_log::names::PartitionName;
    ///
    /// let name = PartitionName::parse(b"page-views-12").unwrap();
    /// assert_eq!((name.topic, name.partition), (&b"page-views"[..], 12));
    /// assert_eq!(PartitionName::parse(b"lost+found"), None);
    /// ```
    pub fn parse(name: &'a [u8]) -> Option<Self> {
        let (name, state) = split_state(name).unwrap_or((name, PartitionState::Live));
        let hyphen = name.iter().rposition(|&byte| byte == b'-')?;
        let (topic, number) = name.split_at_checked(hyphen)?;
        // `Integer.parseInt` reads more than Kafka writes: a plus sign, and any zeros before the number.
        let partition = std::str::from_utf8(number.strip_prefix(b"-")?).ok()?.parse().ok()?;
        (!topic.is_empty()).then_some(Self { topic, partition, state })
    }

    /// The name that its directory gets before it is removed, or put aside as that of no topic
    /// (`UnifiedLog.logDeleteDirName`, `logStrayDirName`). Kafka takes a random id; `id` is any that no
    /// other directory of this partition has.
    ///
    /// # Examples
    /// ```
    /// use ottla_log::names::{PartitionName, PartitionState};
    ///
    /// let name = PartitionName::parse(b"orders-3").unwrap();
    /// assert_eq!(
    ///     name.renamed(PartitionState::Delete, [0xab; 16]),
    ///     *b"orders-3.abababababababababababababababab-delete"
    /// );
    /// ```
    pub fn renamed(&self, state: PartitionState, id: [u8; 16]) -> Vec<u8> {
        let id = u128::from_be_bytes(id);
        let mut end = format!("-{}.{id:032x}", self.partition).into_bytes();
        end.extend_from_slice(state.suffix());
        let kept = self.topic.len().min(MAX_NAME_CHARACTERS.saturating_sub(end.len()));
        [self.topic.get(..kept).unwrap_or_default(), &end].concat()
    }
}

/// Whether a broker does not start over a log directory that has a directory of this name: it takes
/// every one for a partition's, but for the cache of tiered storage, and gives up at a name without
/// a topic and a number (`LogManager.loadLogs`).
///
/// # Examples
/// ```
/// use ottla_log::names::refuses_start;
///
/// assert!(refuses_start(b"lost+found"));
/// assert!(refuses_start(b"orders-0.bak"));
/// assert!(!refuses_start(b"orders-0"));
/// assert!(!refuses_start(b"remote-log-index-cache"));
/// ```
pub fn refuses_start(name: &[u8]) -> bool {
    name != REMOTE_INDEX_CACHE && PartitionName::parse(name).is_none()
}

/// The name before `.<id>-delete` and its like.
fn split_state(name: &[u8]) -> Option<(&[u8], PartitionState)> {
    let with_state = |state: PartitionState| {
        let name = name.strip_suffix(state.suffix())?;
        let (name, id) = name.split_at_checked(name.len().checked_sub(ID_CHARACTERS)?)?;
        let is_id = id.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        Some((name.strip_suffix(b".").filter(|_| is_id)?, state))
    };
    PartitionState::ALL.into_iter().filter(|&s| s != PartitionState::Live).find_map(with_state)
}
