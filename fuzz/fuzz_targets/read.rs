#![no_main]
//! Arbitrary bytes as a buffer of batches: every level of checking, by every kernel, agrees with a
//! plain reading record by record.

use libfuzzer_sys::fuzz_target;
use ottla_format::batches::{Batches, is_zero_tail};
use ottla_format::check::{Checker, Level};
use ottla_format::compression::Codecs;
use ottla_fuzz::{limits, mend_checksums, records};

fuzz_target!(|data: &[u8]| {
    check(data);
    let mut mended = data.to_vec();
    mend_checksums(&mut mended);
    check(&mended);
});

fn check(data: &[u8]) {
    let read = records(data, &mut Codecs::new(limits()));
    let mut batches = Batches::new(data, 0);
    batches.by_ref().for_each(drop);
    let is_whole = batches.tail().is_empty() || is_zero_tail(data, batches.position());

    for level in [Level::Crc, Level::Decode, Level::Full] {
        let mut outcomes = ottla_kernels::Level::available()
            .iter()
            .map(|&kernels| Checker::with_kernels(level, limits(), kernels).check_all(data));
        let first = outcomes.next().expect("there is a portable kernel");
        outcomes.for_each(|outcome| assert_eq!(outcome, first, "{level:?}"));

        match (level, &read) {
            (Level::Decode, Ok(batches)) if is_whole => {
                let count = batches.iter().map(|(_, records)| records.len() as u64).sum();
                assert_eq!(first, Ok(count));
            }
            (Level::Decode | Level::Full, Err(_)) => assert!(first.is_err(), "{read:?}"),
            _ => {}
        }
    }
}
