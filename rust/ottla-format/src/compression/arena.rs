//! The memory that payloads are inflated into.

use crate::clients::ClientFault;
use crate::limits::KEPT_ARENA_BYTES;

/// What inflating the smallest payload counts for: calling a codec takes as long as making so many
/// bytes.
const MIN_INFLATED_BYTES: usize = 4 << 10;

/// Why a payload is refused; the caller knows the codec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Undecodable,
    /// Kafka's own stream must be asked what it makes of the payload.
    Unusual,
    TooLarge,
}

/// The memory payloads are inflated into. Its bytes have been zeroed once; codecs overwrite them.
#[derive(Default)]
pub(super) struct Arena {
    bytes: Vec<u8>,
    limit: usize,
    /// What the streams inflate into.
    streamed: Vec<u8>,
    /// Bytes that may be inflated before the memory that a refused payload has filled is given back.
    kept_for: usize,
    client_fault: Option<ClientFault>,
}

impl Arena {
    /// The bound in force.
    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// The first `length` bytes, which a codec has written.
    #[allow(clippy::indexing_slicing, reason = "a codec returns as many bytes as it has written")]
    pub(super) fn written(&self, length: usize) -> &[u8] {
        &self.bytes[..length]
    }

    pub(super) fn start(&mut self, limit: u64) {
        self.limit = usize::try_from(limit).unwrap_or(usize::MAX);
        self.client_fault = None;
        if self.kept_for == 0 {
            self.trim();
        }
    }

    /// A payload was inflated to so many bytes.
    pub(super) fn inflated(&mut self, bytes: usize) {
        self.kept_for = self.kept_for.saturating_sub(bytes.max(MIN_INFLATED_BYTES));
    }

    /// A payload was refused beyond the bound, and the next one may be. Fresh pages for each would
    /// take longer than inflating, also where each follows on a sound one of the same size, so they
    /// are kept until twice as much was inflated of others.
    pub(super) fn refused(&mut self) {
        self.kept_for = self.bytes.len().max(self.streamed.len().min(self.limit)).saturating_mul(2);
    }

    /// Notes what stops some clients in the payload that is inflated.
    pub(super) fn note(&mut self, fault: ClientFault) {
        self.client_fault.get_or_insert(fault);
    }

    /// The first fault that was noted since the start.
    pub(super) fn client_fault(&self) -> Option<ClientFault> {
        self.client_fault
    }

    pub(super) fn trim(&mut self) {
        self.kept_for = 0;
        if self.bytes.len() > KEPT_ARENA_BYTES {
            self.bytes.truncate(KEPT_ARENA_BYTES);
            self.bytes.shrink_to_fit();
        }
        if self.streamed.capacity() > KEPT_ARENA_BYTES {
            self.streamed = Vec::new();
        }
    }

    /// Lends the memory that streams inflate into, without bytes.
    pub(super) fn lend(&mut self) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.streamed);
        bytes.clear();
        bytes
    }

    /// Takes back what was lent.
    pub(super) fn take_back(&mut self, streamed: Vec<u8>) {
        self.streamed = streamed;
    }

    /// The bytes that may be written behind the first `used`: at least `wanted`, or all that the bound
    /// leaves.
    #[allow(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        reason = "codecs have written `used` bytes, so it is below the bound and the length"
    )]
    pub(super) fn room(&mut self, used: usize, wanted: usize) -> &mut [u8] {
        let end = used.saturating_add(wanted).min(self.limit);
        if self.bytes.len() < end {
            let length = end.checked_next_power_of_two().unwrap_or(end).min(self.limit);
            if used == 0 {
                // Nothing to keep: fresh zeroed pages cost nothing until they are written.
                self.bytes = Vec::new();
                self.bytes = vec![0; length];
            } else {
                self.bytes.reserve_exact(length - self.bytes.len());
                self.bytes.resize(length, 0);
            }
        }
        let top = self.bytes.len().min(self.limit);
        &mut self.bytes[used..top]
    }

    /// Exactly `length` bytes behind the first `used`.
    pub(super) fn exactly(&mut self, used: usize, length: usize) -> Result<&mut [u8], Fault> {
        if length > self.left(used) {
            return Err(Fault::TooLarge);
        }
        self.room(used, length).get_mut(..length).ok_or(Fault::TooLarge)
    }

    /// The bytes that the bound leaves behind the first `used`.
    pub(super) fn left(&self, used: usize) -> usize {
        self.limit.saturating_sub(used)
    }
}
