//! `FeatureLevelRecord` of the cluster's metadata (KIP-584, KIP-778): which release a cluster was
//! formatted for, as `bootstrap.checkpoint` says it.

use super::schema::{Field, Kind, Schema};

const RECORD: Schema = Schema {
    latest: 0,
    flexible: 0,
    fields: &[Field::new("name", Kind::Text), Field::new("feature_level", Kind::Int16)],
};

/// The first level of `metadata.version` of each release since 3.0 (`MetadataVersion`).
const RELEASES: [(i64, (u8, u8)); 15] = [
    (1, (3, 0)),
    (2, (3, 1)),
    (3, (3, 2)),
    (4, (3, 3)),
    (8, (3, 4)),
    (9, (3, 5)),
    (12, (3, 6)),
    (15, (3, 7)),
    (20, (3, 8)),
    (21, (3, 9)),
    (22, (4, 0)),
    (26, (4, 1)),
    (28, (4, 2)),
    (30, (4, 3)),
    (31, (4, 4)),
];

/// The release that brokers have at least, by the value of a record of the metadata; `None` where it
/// is no level of `metadata.version`.
///
/// # Examples
/// ```
/// use ottla_log::internal_topics::feature_level::least_release;
///
/// let value = b"\x01\x0c\x00\x11metadata.version\x00\x1b\x00";
/// assert_eq!(least_release(value), Some((4, 1)));
/// ```
pub fn least_release(value: &[u8]) -> Option<(u8, u8)> {
    // The version of the frame, the number of the record's type, and its version.
    let [1, 12, 0, fields @ ..] = value else { return None };
    let record = RECORD.read(fields, 0).ok()?;
    if record.text("name")? != "metadata.version" {
        return None;
    }
    let level = record.int("feature_level")?;
    RELEASES.iter().rev().find(|(first, _)| *first <= level).map(|(_, release)| *release)
}

#[cfg(test)]
#[allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test panics to fail"
)]
mod tests {
    use super::{RELEASES, least_release};

    fn value(name: &str, level: i16) -> Vec<u8> {
        let size = u8::try_from(name.len() + 1).unwrap();
        let level = level.to_be_bytes();
        [&[1, 12, 0, size], name.as_bytes(), &level, &[0]].concat()
    }

    #[test]
    fn each_level_belongs_to_the_last_release_that_began_below_it() {
        for pair in RELEASES.windows(2) {
            let (first, release) = pair[0];
            for level in first..pair[1].0 {
                let level = i16::try_from(level).unwrap();
                assert_eq!(least_release(&value("metadata.version", level)), Some(release));
            }
        }
        assert_eq!(least_release(&value("metadata.version", i16::MAX)), Some((4, 4)));
        assert_eq!(least_release(&value("metadata.version", 0)), None);
    }

    #[test]
    fn other_records_say_nothing() {
        assert_eq!(least_release(&value("group.version", 26)), None);
        let whole = value("metadata.version", 26);
        for size in 0..whole.len() {
            assert_eq!(least_release(&whole[..size]), None);
        }
    }
}
