#![no_main]
//! Arbitrary segments, with the snapshot and the epochs before them: what should stand beside them is
//! built within bounds, agrees with a prediction over them, and comes out the same when what was built
//! is built on again.

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use ottla_fuzz::{INFLATED_BYTES, bounded, mend_checksums};
use ottla_log::recovery::{IndexConfig, LoadError, Rebuild};
use ottla_log::sidefiles::checkpoint::read_leader_epochs;
use ottla_log::sidefiles::snapshot::read_snapshot;

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    base_offset: i64,
    is_near: bool,
    snapshot: Option<&'a [u8]>,
    leader_epochs: Option<&'a [u8]>,
    index_interval_bytes: u16,
    segment: &'a [u8],
}

fuzz_target!(|input: Input<'_>| {
    let mut segment = input.segment.to_vec();
    mend_checksums(&mut segment);
    let base_offset = if input.is_near { input.base_offset & 0xff } else { input.base_offset };
    let config = IndexConfig {
        index_interval_bytes: input.index_interval_bytes.into(),
        ..IndexConfig::default()
    };
    let Input { snapshot, leader_epochs, .. } = input;
    let bytes =
        segment.len() + snapshot.map_or(0, <[u8]>::len) + leader_epochs.map_or(0, <[u8]>::len);
    let build = || {
        let mut rebuild = Rebuild::new(snapshot, leader_epochs, config)?;
        let built = rebuild.segment(&segment.as_slice(), base_offset)?;
        Ok::<_, LoadError>((built, rebuild))
    };
    let Ok((built, mut rebuild)) = bounded(bytes + INFLATED_BYTES, build) else { return };
    assert_eq!(Some(&built), build().ok().as_ref().map(|(built, _)| built));
    let epochs = rebuild.leader_epochs();
    // One rebuild over two segments knows what another knows of the snapshot between them.
    let next = built.next_offset;
    let mut other = Rebuild::new(Some(&built.snapshot), Some(&epochs), config).expect("was built");
    let both = [&mut rebuild, &mut other].map(|each| each.segment(&segment.as_slice(), next).ok());
    assert_eq!(both[0], both[1]);
    assert_eq!(rebuild.leader_epochs(), other.leader_epochs());
    assert!(built.valid_bytes <= segment.len() as u64);
    assert!(built.offset_index.len().is_multiple_of(8));
    assert!(built.time_index.len().is_multiple_of(12));
    assert!(read_snapshot(&built.snapshot).is_ok());
    assert!(read_leader_epochs(&epochs).is_ok());
});
