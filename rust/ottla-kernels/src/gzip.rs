//! gzip members and their checksum, by libdeflate.

use libdeflate_sys as sys;
use std::fmt;
use std::ptr::NonNull;

/// Why a member could not be decompressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GzipError {
    /// Not a gzip member, a truncated one, or one whose checksum or size does not match its content.
    BadData,
    /// The member holds more bytes than there is room for.
    InsufficientSpace,
}

impl fmt::Display for GzipError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            GzipError::BadData => "not a whole, valid gzip member",
            GzipError::InsufficientSpace => {
                "the gzip member holds more bytes than there is room for"
            }
        })
    }
}

impl std::error::Error for GzipError {}

/// The result for one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Bytes of input used.
    pub used: usize,
    /// Bytes of output written.
    pub written: usize,
}

/// A decompressor. Reuse it: making one costs more than a small member.
///
/// # Examples
///
/// ```
/// use ottla_kernels::gzip::{Decompressor, Member, compress};
///
/// let member = compress(6, b"hello hello").expect("level 6 exists");
/// let mut text = [0; 32];
/// let found = Decompressor::new().member(&member, &mut text).expect("a member");
/// assert_eq!(found, Member { used: member.len(), written: 11 });
/// assert_eq!(&text[..11], b"hello hello");
/// ```
#[derive(Debug)]
pub struct Decompressor(NonNull<sys::libdeflate_decompressor>);

// SAFETY: libdeflate's objects belong to no thread; `&mut self` keeps two from using one at once.
unsafe impl Send for Decompressor {}
// SAFETY: nothing can be done with `&Decompressor`.
unsafe impl Sync for Decompressor {}

impl Decompressor {
    /// A new decompressor.
    pub fn new() -> Decompressor {
        // SAFETY: the call needs nothing.
        let decompressor = unsafe { sys::libdeflate_alloc_decompressor() };
        let Some(decompressor) = NonNull::new(decompressor) else {
            std::alloc::handle_alloc_error(std::alloc::Layout::new::<[u8; 1 << 14]>());
        };
        Decompressor(decompressor)
    }

    /// Decompresses the gzip member at the beginning of `input` into the beginning of `output`.
    ///
    /// # Errors
    ///
    /// [`GzipError`]; the content of `output` is then unspecified.
    pub fn member(&mut self, input: &[u8], output: &mut [u8]) -> Result<Member, GzipError> {
        let mut member = Member { used: 0, written: 0 };
        // SAFETY: the pointers and sizes are those of the slices, and the decompressor is ours.
        let result = unsafe {
            sys::libdeflate_gzip_decompress_ex(
                self.0.as_ptr(),
                input.as_ptr().cast(),
                input.len(),
                output.as_mut_ptr().cast(),
                output.len(),
                &raw mut member.used,
                &raw mut member.written,
            )
        };
        match result {
            sys::libdeflate_result_LIBDEFLATE_SUCCESS => Ok(member),
            sys::libdeflate_result_LIBDEFLATE_INSUFFICIENT_SPACE => {
                Err(GzipError::InsufficientSpace)
            }
            _ => Err(GzipError::BadData),
        }
    }
}

impl Default for Decompressor {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Decompressor {
    fn drop(&mut self) {
        // SAFETY: it came from libdeflate and is not used after this.
        unsafe { sys::libdeflate_free_decompressor(self.0.as_ptr()) };
    }
}

/// The CRC-32 of gzip and of batches below magic 2, going on from that of the bytes before, or from 0.
///
/// # Examples
///
/// ```
/// use ottla_kernels::gzip::crc32;
///
/// assert_eq!(crc32(0, b"123456789"), 0xcbf4_3926);
/// assert_eq!(crc32(crc32(0, b"1234"), b"56789"), 0xcbf4_3926);
/// ```
pub fn crc32(before: u32, data: &[u8]) -> u32 {
    // SAFETY: the pointer and the size are those of the slice.
    unsafe { sys::libdeflate_crc32(before, data.as_ptr().cast(), data.len()) }
}

/// One gzip member of `input`, at level 1 (fast) to 12 (small); `None` for another level.
pub fn compress(level: u8, input: &[u8]) -> Option<Vec<u8>> {
    if !(1..=12).contains(&level) {
        return None;
    }
    // SAFETY: the call needs nothing; the compressor lives until it is freed below, and the
    // pointers and sizes are those of the slices.
    unsafe {
        let compressor = sys::libdeflate_alloc_compressor(i32::from(level));
        if compressor.is_null() {
            std::alloc::handle_alloc_error(std::alloc::Layout::new::<[u8; 1 << 20]>());
        }
        let bound = sys::libdeflate_gzip_compress_bound(compressor, input.len());
        let mut member = vec![0; bound];
        let size = sys::libdeflate_gzip_compress(
            compressor,
            input.as_ptr().cast(),
            input.len(),
            member.as_mut_ptr().cast(),
            bound,
        );
        sys::libdeflate_free_compressor(compressor);
        member.truncate(size);
        (size > 0).then_some(member)
    }
}
