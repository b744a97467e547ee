#![no_main]
//! Arbitrary bytes as a segment file: the audit ends, counts every byte once, and says the same of
//! the same bytes.

use libfuzzer_sys::fuzz_target;
use ottla_audit::{Scanner, SegmentContext};
use ottla_format::check::Level;
use ottla_fuzz::{limits, mend_checksums};

fuzz_target!(|data: &[u8]| {
    let mut data = data.to_vec();
    if data.first().is_some_and(|first| first & 1 != 0) {
        mend_checksums(&mut data[1..]);
    }
    let source = data.get(1..).unwrap_or_default();
    for level in [Level::Crc, Level::Full] {
        let scan = || {
            let context = SegmentContext { base_offset: Some(0), ..SegmentContext::default() };
            Scanner::new(level, limits())
                .scan(&source, context, &mut |_| true, None)
                .expect("memory can be read")
        };
        let first = scan();
        assert_eq!(first.counters.bytes, source.len() as u64);
        assert!(first.valid_bytes <= source.len() as u64);
        assert_eq!(first.findings.kept(), scan().findings.kept());
    }
});
