//! The releases of Apache Kafka that are known, and the one table of what they decide otherwise.
//!
//! A rule that not every release has asks [`KafkaVersion::has`] with a row of the table, so that no
//! difference between releases can be without one.

use std::fmt;

/// A release of Apache Kafka.
///
/// # Examples
/// ```
/// use ottla_log::kafka_version::{KafkaVersion, ReleaseDifference};
///
/// let version = KafkaVersion::from_name("4.2")?;
/// assert_eq!(version.to_string(), "4.2.2");
/// assert!(version.has(ReleaseDifference::RecordBounds));
/// assert!(KafkaVersion::from_name("3.9").is_err());
/// # Ok::<(), ottla_log::kafka_version::UnknownKafkaVersion>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KafkaVersion {
    major: u8,
    minor: u8,
    patch: u8,
}

impl Default for KafkaVersion {
    /// The newest release that is known.
    fn default() -> Self {
        Self::NEWEST
    }
}

impl KafkaVersion {
    /// The newest release that is known.
    pub const NEWEST: Self = Self::new(4, 4, 0);

    /// Every release that is known, oldest first.
    pub const RELEASES: &[Self] = &[
        Self::new(4, 1, 0),
        Self::new(4, 1, 1),
        Self::new(4, 1, 2),
        Self::new(4, 2, 0),
        Self::new(4, 2, 1),
        Self::new(4, 2, 2),
        Self::new(4, 3, 0),
        Self::new(4, 3, 1),
        Self::NEWEST,
    ];

    const fn new(major: u8, minor: u8, patch: u8) -> Self {
        Self { major, minor, patch }
    }

    /// Returns the release of a name such as `4.2.2`, or the newest release of a line such as `4.2`.
    ///
    /// # Errors
    /// [`UnknownKafkaVersion`], which names those that are known.
    pub fn from_name(name: &str) -> Result<Self, UnknownKafkaVersion> {
        let mut numbers = name.split('.').map(number);
        let line = (numbers.next().flatten(), numbers.next().flatten());
        let (patch, end) = (numbers.next(), numbers.next());
        Self::RELEASES
            .iter()
            .rev()
            .find(|release| {
                line == (Some(release.major), Some(release.minor))
                    && patch.is_none_or(|patch| patch == Some(release.patch))
                    && end.is_none()
            })
            .copied()
            .ok_or_else(|| UnknownKafkaVersion { name: name.to_owned() })
    }

    /// Its line: `4.2` of `4.2.2`.
    pub fn line(self) -> String {
        format!("{}.{}", self.major, self.minor)
    }

    /// Whether what a row of the table says of newer releases is so in this one.
    pub fn has(self, row: ReleaseDifference) -> bool {
        row.first_releases().iter().any(|first| {
            (first.major, first.minor) == (self.major, self.minor) && first.patch <= self.patch
        })
    }
}

impl fmt::Display for KafkaVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// A number without a sign or a leading zero.
fn number(digits: &str) -> Option<u8> {
    let number: u8 = digits.parse().ok()?;
    (digits.len() == 1 || !digits.starts_with(['0', '+'])).then_some(number)
}

/// The name of no release that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownKafkaVersion {
    name: String,
}

impl fmt::Display for UnknownKafkaVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let releases = KafkaVersion::RELEASES;
        let mut lines: Vec<_> = releases.iter().map(|release| release.line()).collect();
        lines.dedup();
        let releases: Vec<_> = releases.iter().map(KafkaVersion::to_string).collect();
        write!(
            f,
            "kafka_version is '{}', expected a line ({}) or a release ({})",
            self.name,
            lines.join(", "),
            releases.join(", ")
        )
    }
}

impl std::error::Error for UnknownKafkaVersion {}

macro_rules! release_differences {
    ($(
        $(#[$doc:meta])*
        $name:ident, $id:literal, from $(($major:literal, $minor:literal, $patch:literal)),+;
        $before:literal, $since:literal;
    )+) => {
        /// Where releases decide otherwise: the rows of the table.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ReleaseDifference {
            $($(#[$doc])* $name,)+
        }

        impl ReleaseDifference {
            /// Every row.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// Stable kebab-case name.
            pub fn id(self) -> &'static str {
                match self { $(Self::$name => $id),+ }
            }

            /// The first release of each line that decides the newer way. A fix that reached an
            /// older line need not be in a newer one.
            pub fn first_releases(self) -> &'static [KafkaVersion] {
                match self {
                    $(Self::$name => const {
                        &[$(KafkaVersion::new($major, $minor, $patch)),+]
                    },)+
                }
            }

            /// What the releases before do.
            pub fn before(self) -> &'static str {
                match self { $(Self::$name => $before),+ }
            }

            /// What these releases do.
            pub fn since(self) -> &'static str {
                match self { $(Self::$name => $since),+ }
            }
        }
    };
}

release_differences! {
    /// The lengths of the records in a compressed batch (docs/kafka/produce-validation.md §5.4).
    RecordBounds, "record-bounds", from (4, 2, 2), (4, 4, 0);
        "do not look at the lengths of records while they skip them, as they do where a compressed batch keeps its codec; have no `max.decompressed.message.bytes`",
        "87, without record errors, for a record of a compressed batch or set whose length is below 0 or above `max.decompressed.message.bytes`, before its bytes are inflated";
    /// The epochs of markers of transaction version 2 (docs/kafka/producer-state.md §3).
    MarkerEpochs, "marker-epochs", from (4, 2, 0), (4, 3, 0), (4, 4, 0);
        "append a marker whose epoch is at least that of the producer, whatever the transaction version",
        "47 for a marker of transaction version 2 whose epoch is not above that of the producer, unless it equals it and is 32767, the last one, or no transaction is open: then it is a marker sent again";
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test panics to fail")]
mod tests {
    use super::{KafkaVersion, ReleaseDifference};

    #[test]
    fn a_line_is_its_newest_release() {
        for (line, release) in
            [("4.1", "4.1.2"), ("4.2", "4.2.2"), ("4.3", "4.3.1"), ("4.4", "4.4.0")]
        {
            assert_eq!(KafkaVersion::from_name(line).unwrap().to_string(), release);
        }
        assert_eq!(KafkaVersion::default(), *KafkaVersion::RELEASES.last().unwrap());
        assert!(KafkaVersion::RELEASES.is_sorted());
    }

    #[test]
    fn a_name_that_is_not_known_is_refused_with_those_that_are() {
        for name in
            ["", "4", "4.0", "4.5", "4.1.3", "4.4.", "04.4", "+4.4", "4.1.02", " 4.4", "4.4.0.0"]
        {
            let error = KafkaVersion::from_name(name).unwrap_err().to_string();
            assert!(error.contains(&format!("'{name}'")), "{error}");
            assert!(error.contains("4.1, 4.2, 4.3, 4.4"), "{error}");
            assert!(error.contains("4.3.1, 4.4.0"), "{error}");
        }
    }

    #[test]
    fn a_fix_of_an_older_line_is_not_in_a_newer_one_that_lacks_it() {
        let having = |row: ReleaseDifference| -> Vec<_> {
            let releases = KafkaVersion::RELEASES.iter().filter(|release| release.has(row));
            releases.map(KafkaVersion::to_string).collect()
        };
        assert_eq!(having(ReleaseDifference::RecordBounds), ["4.2.2", "4.4.0"]);
        let since_4_2 = ["4.2.0", "4.2.1", "4.2.2", "4.3.0", "4.3.1", "4.4.0"];
        assert_eq!(having(ReleaseDifference::MarkerEpochs), since_4_2);
    }
}
