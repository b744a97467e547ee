//! Which partition a record with a key goes to: Kafka's default, and that of every client whose
//! records have to meet in one partition with those of Java.

/// The seed of Kafka's hash.
const SEED: u32 = 0x9747_b28c;
/// The multiplier and the shift of `MurmurHash2`.
const M: u32 = 0x5bd1_e995;
const R: u32 = 24;

/// `MurmurHash2` as Kafka's clients compute it over a key.
///
/// # Examples
/// ```
/// assert_eq!(ottla_format::partitioning::murmur2(b"foobar"), -790332482);
/// ```
pub fn murmur2(key: &[u8]) -> i32 {
    let mut hash = SEED ^ key.len() as u32;
    let mut words = key.chunks_exact(4);
    for word in &mut words {
        let word = word.iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte));
        let mixed = word.wrapping_mul(M);
        hash = hash.wrapping_mul(M) ^ (mixed ^ mixed >> R).wrapping_mul(M);
    }
    let tail = words.remainder();
    if !tail.is_empty() {
        let tail = tail.iter().rev().fold(0, |tail, &byte| tail << 8 | u32::from(byte));
        hash = (hash ^ tail).wrapping_mul(M);
    }
    hash = (hash ^ hash >> 13).wrapping_mul(M);
    (hash ^ hash >> 15) as i32
}

/// The partition of a key among some; `None` where there are none.
pub fn partition_of(key: &[u8], partitions: u32) -> Option<u32> {
    // Java makes a number positive by dropping its sign, so that -1 becomes 2^31 - 1.
    (murmur2(key) as u32 & 0x7fff_ffff).checked_rem(partitions)
}

/// The rows of each partition, in order: all rows by partition, and where those of each begin, with
/// the end of the last.
///
/// # Errors
/// The first row whose partition is not one of `count`.
pub fn rows_by_partition(partitions: &[i32], count: u32) -> Result<(Vec<i64>, Vec<i64>), usize> {
    let mut counts = vec![0i64; count as usize];
    for (row, &partition) in partitions.iter().enumerate() {
        let known = usize::try_from(partition).ok().and_then(|place| counts.get_mut(place));
        let known = known.ok_or(row)?;
        *known = known.saturating_add(1);
    }
    let mut end = 0i64;
    let mut bounds = vec![0];
    bounds.extend(counts.iter().map(|&count| {
        end = end.saturating_add(count);
        end
    }));
    let mut rows = vec![0; partitions.len()];
    let mut nexts = bounds.clone();
    for (row, &partition) in partitions.iter().enumerate() {
        let Some(next) = nexts.get_mut(partition as usize) else { continue };
        if let Some(place) = rows.get_mut(*next as usize) {
            *place = row as i64;
        }
        *next = next.saturating_add(1);
    }
    Ok((rows, bounds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_the_hashes_that_java_gives_them() {
        // Of Apache's `UtilsTest`; the last of librdkafka's tests.
        let known: [(&[u8], i32); 7] = [
            (b"21", -973_932_308),
            (b"foobar", -790_332_482),
            (b"a-little-bit-long-string", -985_981_536),
            (b"a-little-bit-longer-string", -1_486_304_829),
            (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            (b"abc", 479_470_107),
            (b"", 275_646_681),
        ];
        for (key, hash) in known {
            assert_eq!(murmur2(key), hash, "{}", String::from_utf8_lossy(key));
        }
    }

    #[test]
    fn a_negative_hash_loses_its_sign_before_it_is_divided() {
        let positive = (-973_932_308i32).wrapping_sub(i32::MIN) as u32;
        assert_eq!(partition_of(b"21", 10), Some(positive % 10));
        assert_eq!(partition_of(b"abc", 1), Some(0));
        assert_eq!(partition_of(b"abc", 0), None);
    }
}
