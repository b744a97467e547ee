//! The topics in which coordinators keep their state, decoded.
//!
//! | module | subject |
//! | --- | --- |
//! | [`schema`] | Kafka's generated formats, read by tables |
//! | [`consumer_offsets`] | `__consumer_offsets`: committed offsets, groups |
//! | [`transaction_state`] | `__transaction_state`: transactional ids |
//! | [`feature_level`] | the cluster's metadata: the release it was formatted for |

pub mod consumer_offsets;
pub mod feature_level;
mod record;
pub mod schema;
pub mod transaction_state;

pub use record::{CoordinatorRecord, RecordValue};

use crate::names::{CONSUMER_OFFSETS, TRANSACTION_STATE};
use schema::DecodeError;

/// Decodes a record of a topic; `None` for a topic that is not one of these.
///
/// # Errors
/// [`DecodeError`], of the key or of the value.
pub fn decode(
    topic: &str,
    key: &[u8],
    value: Option<&[u8]>,
) -> Option<Result<CoordinatorRecord, DecodeError>> {
    match topic {
        CONSUMER_OFFSETS => Some(consumer_offsets::decode(key, value)),
        TRANSACTION_STATE => Some(transaction_state::decode(key, value)),
        _ => None,
    }
}
