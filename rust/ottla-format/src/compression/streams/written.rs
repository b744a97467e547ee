//! Payloads byte for byte as Kafka's own encoders write them.

use std::io::Write;

use flate2::GzBuilder;
use flate2::write::GzEncoder;
use zstd_safe::zstd_sys::ZSTD_EndDirective::{ZSTD_e_continue, ZSTD_e_end, ZSTD_e_flush};
use zstd_safe::{CCtx, CParameter, InBuffer, OutBuffer, compress_bound};

/// A gzip member as Java's `GZIPOutputStream` writes it, by zlib.
pub(in crate::compression) fn gzip_written(level: i32, payload: &[u8]) -> Option<Vec<u8>> {
    let level = flate2::Compression::new(u32::try_from(level).ok()?);
    let mut encoder: GzEncoder<Vec<u8>> =
        GzBuilder::new().operating_system(255).write(Vec::new(), level);
    encoder.write_all(payload).ok()?;
    encoder.finish().ok()
}

/// A frame as zstd-jni's stream writes it, without a content size.
pub(in crate::compression) fn zstd_written(level: i32, payload: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = CCtx::try_create()?;
    encoder.set_parameter(CParameter::CompressionLevel(level)).ok()?;
    let mut bytes = vec![0; compress_bound(payload.len()).saturating_add(64)];
    let mut output = OutBuffer::around(&mut bytes[..]);
    let mut input = InBuffer::around(payload);
    while input.pos() < payload.len() {
        encoder.compress_stream2(&mut output, &mut input, ZSTD_e_continue).ok()?;
    }
    // Java flushes before it closes: the last block is empty.
    encoder.compress_stream2(&mut output, &mut input, ZSTD_e_flush).ok()?;
    let left = encoder.compress_stream2(&mut output, &mut input, ZSTD_e_end).ok()?;
    let length = output.pos();
    bytes.truncate(length);
    (left == 0).then_some(bytes)
}
