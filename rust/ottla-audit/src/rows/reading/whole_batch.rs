//! The bytes of one batch, and what its records show.

use crate::segment::scanner::Scanner;
use ottla_format::attributes::Compression;
use ottla_format::batch::BatchInfo;
use ottla_format::check::Level;
use ottla_format::header::Envelope;
use ottla_log::producers::ProducerBatch;
use ottla_log::source::{Source, fill};
use std::io;

/// Whether only the records of a batch show its first offset.
pub(super) fn is_wrapper(info: &BatchInfo) -> bool {
    info.magic < 2 && info.compression() != Ok(Compression::None)
}

/// Returns the bytes of a batch, if it is not too large and all there.
pub(super) fn read_batch(
    scanner: &mut Scanner,
    source: &dyn Source,
    info: &BatchInfo,
) -> io::Result<Option<Vec<u8>>> {
    if info.size > scanner.checker().limits().batch_bytes {
        return Ok(None);
    }
    let mut whole = vec![0; info.size as usize];
    let filled = fill(source, info.position, &mut whole)?;
    Ok((filled == whole.len()).then_some(whole))
}

/// Returns the first offset of a wrapper, if its records can be read.
pub(super) fn wrapper_base_offset(
    scanner: &mut Scanner,
    source: &dyn Source,
    info: &BatchInfo,
) -> io::Result<Option<i64>> {
    let Some(whole) = read_batch(scanner, source, info)? else { return Ok(None) };
    let checker = scanner.checker();
    let Some(envelope) = Envelope::read(&whole, 0) else { return Ok(None) };
    let level = checker.level();
    checker.set_level(Level::Decode);
    let found = checker.check(&whole, 0, &envelope, &mut Vec::new());
    checker.set_level(level);
    Ok(found.base_offset)
}

/// Returns a marker as the rules of producers see it, if it can be read.
pub(super) fn read_marker(
    scanner: &mut Scanner,
    source: &dyn Source,
    info: &BatchInfo,
) -> io::Result<Option<ProducerBatch>> {
    let Some(whole) = read_batch(scanner, source, info)? else { return Ok(None) };
    let info = BatchInfo { position: 0, ..*info };
    Ok(ProducerBatch::read(&whole, &info, scanner.checker().codecs()).ok().flatten())
}
