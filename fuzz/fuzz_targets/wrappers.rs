#![no_main]
//! Compressed wrappers of magic 0 and 1 around arbitrary message sets: two bytes choose magic and
//! codec, eight the wrapper's offset, the rest is the set.

use libfuzzer_sys::fuzz_target;
use ottla_format::attributes::Compression;
use ottla_format::check::{Checker, Level};
use ottla_format::compression::Codecs;
use ottla_fuzz::{limits, mend_checksums, records};

fuzz_target!(|data: &[u8]| {
    let Some((head, set)) = data.split_first_chunk::<10>() else { return };
    let magic = head[0] & 1;
    let codec = Compression::ALL[usize::from(head[1] & 3)];
    let mut set = set.to_vec();
    if head[1] & 4 != 0 {
        mend_checksums(&mut set);
    }
    let mut codecs = Codecs::new(limits());
    // With no codec the arbitrary bytes are the payload, under the name of one.
    let payload = codecs.compress(codec, None, magic as i8, &set).expect("compresses");
    let named = if codec == Compression::None { 1 + (head[1] >> 3) % 3 } else { codec as u8 };

    let mut body = vec![0; 4];
    body.extend_from_slice(&[magic, named | head[0] & 8]);
    if magic > 0 {
        body.extend_from_slice(&1_500_000_000_000i64.to_be_bytes());
    }
    body.extend_from_slice(&(-1i32).to_be_bytes());
    body.extend_from_slice(&(payload.len() as u32).to_be_bytes());
    body.extend_from_slice(&payload);
    let mut wrapper = head[2..].to_vec();
    wrapper.extend_from_slice(&(body.len() as u32).to_be_bytes());
    wrapper.extend_from_slice(&body);
    mend_checksums(&mut wrapper);

    let read = records(&wrapper, &mut codecs);
    let decoded = Checker::new(Level::Decode, limits()).check_all(&wrapper);
    match read {
        Ok(batches) => assert_eq!(decoded, Ok(batches[0].1.len() as u64)),
        Err(error) => assert_eq!(decoded.map_err(|e| e.kind), Err(error.kind)),
    }
    let _ = Checker::new(Level::Full, limits()).check_all(&wrapper);
});
