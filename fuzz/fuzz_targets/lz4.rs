#![no_main]
//! Arbitrary bytes as an lz4 payload, with and without the header checksum verified.

use libfuzzer_sys::fuzz_target;
use ottla_format::attributes::Compression;

fuzz_target!(|payload: &[u8]| {
    ottla_fuzz::try_codec(Compression::Lz4, 0, payload);
    ottla_fuzz::try_codec(Compression::Lz4, 2, payload);
});
