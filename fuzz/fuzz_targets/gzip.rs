#![no_main]
//! Arbitrary bytes as a gzip payload.

use libfuzzer_sys::fuzz_target;
use ottla_format::attributes::Compression;

fuzz_target!(|payload: &[u8]| ottla_fuzz::try_codec(Compression::Gzip, 2, payload));
