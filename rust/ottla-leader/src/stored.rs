//! The bytes that a leader stores, copied only where they are written anew.

use ottla_format::header::Header;
use std::borrow::Cow;

/// The bytes a leader stores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stored<'a> {
    /// Nothing is appended.
    Nothing,
    /// As received.
    AsReceived(&'a [u8]),
    /// One batch as received, but for some fields of its header.
    Patched {
        /// The batch as received.
        batch: &'a [u8],
        /// The fields.
        patch: Patch,
    },
    /// Written anew.
    Owned(Vec<u8>),
}

/// What a leader changes in the header of a batch that it keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "Kafka's own names")]
pub struct Patch {
    pub base_offset: i64,
    pub max_timestamp: i64,
    pub partition_leader_epoch: i32,
    pub crc: u32,
    pub attributes: u16,
}

impl Patch {
    /// The header with the changes.
    #[inline]
    pub fn applied_to(&self, header: &Header) -> Header {
        let Self { base_offset, max_timestamp, partition_leader_epoch, crc, attributes } = *self;
        Header { base_offset, partition_leader_epoch, crc, attributes, max_timestamp, ..*header }
    }

    /// The new header of a received batch; `None` of one without a whole header.
    #[inline]
    pub fn header_of(&self, batch: &[u8]) -> Option<Header> {
        Header::read(batch, 0).map(|header| self.applied_to(&header))
    }
}

impl Stored<'_> {
    /// How many bytes they are.
    pub fn len(&self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::AsReceived(bytes) => bytes.len(),
            Self::Patched { batch, .. } => batch.len(),
            Self::Owned(bytes) => bytes.len(),
        }
    }

    /// The same with its bytes owned.
    pub fn into_owned(self) -> Stored<'static> {
        match self {
            Self::Nothing => Stored::Nothing,
            Self::Owned(bytes) => Stored::Owned(bytes),
            borrowed => Stored::Owned(borrowed.to_vec()),
        }
    }

    /// Whether nothing is appended.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes in one piece, copied only where the header changes.
    pub fn bytes(&self) -> Cow<'_, [u8]> {
        match self {
            Self::Nothing => Cow::Borrowed(&[]),
            Self::AsReceived(bytes) => Cow::Borrowed(bytes),
            Self::Patched { batch, patch } => {
                let mut stored = batch.to_vec();
                if let Some(header) = patch.header_of(batch)
                    && let Some(head) = stored.first_chunk_mut()
                {
                    *head = header.to_bytes();
                }
                stored.into()
            }
            Self::Owned(bytes) => Cow::Borrowed(bytes),
        }
    }

    /// The bytes in one piece, copied.
    pub fn to_vec(&self) -> Vec<u8> {
        self.bytes().into_owned()
    }

    /// The header of the (first) batch, where it is of magic 2.
    #[inline(always)]
    pub fn header(&self) -> Option<Header> {
        let header = match self {
            Self::Patched { batch, patch } => patch.header_of(batch),
            Self::Nothing => None,
            Self::AsReceived(bytes) => Header::read(bytes, 0),
            Self::Owned(bytes) => Header::read(bytes, 0),
        };
        header.filter(|header| header.magic >= 2)
    }
}
