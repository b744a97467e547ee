//! The topics in which coordinators keep their state, decoded.
//!
//! | module | subject |
//! | --- | --- |
//! | [`schema`] | Kafka's generated formats, read by tables |
//! | [`consumer_offsets`] | `__consumer_offsets`: committed offsets, groups |
//! | `group_values` | values of share and streams groups in `__consumer_offsets` |
//! | [`share_group_state`] | `__share_group_state`: how far share groups have come |
//! | [`transaction_state`] | `__transaction_state`: transactional ids |
//! | [`feature_level`] | the cluster's metadata: the release it was formatted for |

pub mod consumer_offsets;
pub mod feature_level;
mod group_values;
mod record;
pub mod schema;
pub mod share_group_state;
pub mod transaction_state;

pub use record::{CoordinatorRecord, RecordValue};

use crate::names::{CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE};
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
        SHARE_GROUP_STATE => Some(share_group_state::decode(key, value)),
        TRANSACTION_STATE => Some(transaction_state::decode(key, value)),
        _ => None,
    }
}
