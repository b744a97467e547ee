//! The checksum of a batch that memory should not hold whole, taken piece by piece.

use ottla_format::header::{CRC_START, HEADER_UP_TO_MAGIC, LOG_OVERHEAD, read_i32};
use ottla_kernels::gzip::crc32;

/// Where the CRC-32C stands in a batch of magic 2.
const CRC_POSITION: usize = 17;

/// The checksum of a batch under way: CRC-32C from magic 2 on, CRC-32 below.
pub(super) enum Checksum {
    Castagnoli(u32),
    Legacy(u32),
}

impl Checksum {
    pub(super) fn new(magic: i8) -> Self {
        if magic >= 2 { Self::Castagnoli(!0) } else { Self::Legacy(0) }
    }

    /// What the head of a batch says the checksum is.
    pub(super) fn stored(magic: i8, head: &[u8]) -> Option<u32> {
        let position = if magic >= 2 { CRC_POSITION } else { LOG_OVERHEAD };
        read_i32(head, position).map(|stored| stored as u32)
    }

    /// Position in a batch of the first byte that the checksum covers.
    pub(super) fn start(&self) -> u64 {
        match self {
            Self::Castagnoli(_) => CRC_START as u64,
            // The magic byte.
            Self::Legacy(_) => (HEADER_UP_TO_MAGIC - 1) as u64,
        }
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Castagnoli(crc) => *crc = extend_crc32c(*crc, bytes),
            Self::Legacy(crc) => *crc = crc32(*crc, bytes),
        }
    }

    pub(super) fn finish(self) -> u32 {
        match self {
            Self::Castagnoli(crc) => !crc,
            Self::Legacy(crc) => crc,
        }
    }
}

/// Extends a running CRC-32C. Slow, and so for these batches alone: the fast kernel takes a batch
/// whole.
fn extend_crc32c(crc: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(crc, |crc, &byte| {
        let index = usize::from((crc as u8) ^ byte);
        CASTAGNOLI.get(index).copied().unwrap_or(0) ^ (crc >> 8)
    })
}

#[allow(clippy::indexing_slicing, reason = "evaluated by the compiler, which checks it")]
const CASTAGNOLI: [u32; 256] = {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut entry = index as u32;
        let mut bit = 0;
        while bit < 8 {
            entry = if entry & 1 == 0 { entry >> 1 } else { (entry >> 1) ^ 0x82f6_3b78 };
            bit += 1;
        }
        table[index] = entry;
        index += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::Checksum;

    #[test]
    fn a_checksum_in_pieces_is_the_checksum_of_the_whole() {
        let data: Vec<u8> = (0..1000u32).map(|number| (number * 7) as u8).collect();
        let (mut castagnoli, mut legacy) = (Checksum::new(2), Checksum::new(1));
        for piece in data.chunks(77) {
            castagnoli.update(piece);
            legacy.update(piece);
        }
        assert_eq!(castagnoli.finish(), ottla_kernels::crc32c(&data));
        assert_eq!(legacy.finish(), crc32fast::hash(&data));
    }
}
