//! Copies in, differences out.

use crate::copies::blocks::BlockReader;
pub use crate::copies::blocks::OpenSegment;
use crate::copies::copy::Copy;
use crate::copies::difference::Comparison;
use crate::copies::finder::DifferenceFinder;
use crate::segment::fingerprint::Fingerprint;
use crate::segment::scanner::Scanner;
use std::io;

/// Compares the copies of a partition. Reads again where their fingerprints differ, a bounded number
/// of batches at a time.
///
/// # Errors
/// Those of opening and reading.
pub fn compare(
    copies: &[Copy],
    scanner: &mut Scanner,
    open: &mut OpenSegment<'_>,
) -> io::Result<Comparison> {
    let mut finder = DifferenceFinder::new(copies);
    let mut reader = BlockReader { copies, scanner, open, bytes: 0 };
    let prints: Vec<&Fingerprint> = copies.iter().map(|copy| &copy.fingerprint).collect();
    reader.walk(&prints, &mut finder)?;
    let bytes = reader.bytes;
    Ok(Comparison { bytes, ..finder.finish() })
}
