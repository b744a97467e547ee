//! The newest offset of each key, in bounded memory: keys are known by 128 bits of keyed hashes, as
//! Kafka knows them by their MD5.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};

/// Bytes of an entry: 16 of the hashes, 8 of the offset, 1 of the table's own.
const ENTRY_BYTES: u64 = 25;

/// Two hashes of a key, whose own keys nobody knows: nobody can make two keys collide.
type Fingerprint = (u64, u64);

/// Hashes fingerprints, which are hashes already.
#[derive(Default)]
struct FirstHalf(u64);

impl Hasher for FirstHalf {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {}

    fn write_u64(&mut self, half: u64) {
        self.0 ^= half;
    }
}

/// The newest offset of each key of a part of a log.
pub(super) struct OffsetMap {
    hashers: (RandomState, RandomState),
    offsets: HashMap<Fingerprint, i64, BuildHasherDefault<FirstHalf>>,
    max_keys: usize,
    latest_offset: i64,
}

impl OffsetMap {
    /// A map of what begins at an offset, in at most so many bytes.
    pub(super) fn new(first_offset: i64, max_bytes: u64) -> Self {
        // The table has a power of two of places, of which seven eighths are taken.
        let places = 1u64 << (max_bytes / ENTRY_BYTES).clamp(8, 1 << 40).ilog2();
        let max_keys = usize::try_from(places.saturating_sub(places / 8)).unwrap_or(usize::MAX);
        Self {
            hashers: (RandomState::new(), RandomState::new()),
            offsets: HashMap::default(),
            max_keys,
            latest_offset: first_offset.saturating_sub(1),
        }
    }

    fn fingerprint(&self, key: &[u8]) -> Fingerprint {
        (self.hashers.0.hash_one(key), self.hashers.1.hash_one(key))
    }

    /// A record is in the log. Returns whether there was room for it; where not, nothing is changed.
    pub(super) fn put(&mut self, key: &[u8], offset: i64) -> bool {
        let fingerprint = self.fingerprint(key);
        if self.offsets.len() >= self.max_keys && !self.offsets.contains_key(&fingerprint) {
            return false;
        }
        self.offsets.insert(fingerprint, offset);
        self.latest_offset = self.latest_offset.max(offset);
        true
    }

    /// Everything up to an offset was looked at.
    pub(super) fn read_up_to(&mut self, offset: i64) {
        self.latest_offset = self.latest_offset.max(offset);
    }

    /// Whether no later record up to [`latest_offset`](Self::latest_offset) has this key.
    pub(super) fn is_newest(&self, key: &[u8], offset: i64) -> bool {
        self.offsets.get(&self.fingerprint(key)).is_none_or(|&newest| offset >= newest)
    }

    /// Up to here the map knows every key.
    pub(super) fn latest_offset(&self) -> i64 {
        self.latest_offset
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_map_takes_newer_records_of_its_keys_and_no_others() {
        let mut map = OffsetMap::new(0, 1);
        let mut offset = 0;
        while map.put(&offset_key(offset), offset) {
            offset += 1;
        }
        assert_eq!(map.offsets.len() as i64, offset);
        assert_eq!(map.latest_offset(), offset - 1);
        assert!(map.put(&offset_key(0), offset + 5));
        assert_eq!(map.latest_offset(), offset + 5);
        assert!(!map.is_newest(&offset_key(0), 0));
        assert!(map.is_newest(&offset_key(0), offset + 5));
        assert!(map.is_newest(&offset_key(offset), offset));
    }

    #[test]
    fn a_table_keeps_within_its_bytes() {
        for bytes in [1 << 10, 1 << 20, (1 << 20) + 4711] {
            let mut map = OffsetMap::new(0, bytes);
            let count =
                (0..1 << 20).take_while(|&offset| map.put(&offset_key(offset), offset)).count();
            let places = map.offsets.capacity() as u64 / 7 * 8;
            assert!(places * ENTRY_BYTES <= bytes, "{places} places in {bytes} bytes");
            assert!(count as u64 * ENTRY_BYTES * 5 > bytes, "{count} keys in {bytes} bytes");
        }
    }

    fn offset_key(offset: i64) -> [u8; 8] {
        offset.to_be_bytes()
    }
}
