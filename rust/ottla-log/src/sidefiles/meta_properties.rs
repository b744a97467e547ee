//! `meta.properties`: to which cluster and broker a log directory belongs (`MetaPropertiesEnsemble`,
//! KIP-858).
//!
//! ```text
//! version=1                                  0 with broker.id instead of node.id
//! cluster.id=gR2xbv8nQDqJwUkBuE0a5A
//! node.id=1
//! directory.id=tRt4fJSrQHyKXp_cBJmJpQ
//! ```

use super::text::{TextError, TextFault, lines, text};
use std::collections::BTreeMap;

/// Digits of the greatest number of 64 bits.
const MAX_NUMBER_DIGITS: usize = 19;

/// The properties of a `meta.properties`, by name; of a name that stands twice the last counts.
///
/// # Errors
/// [`TextFault::NotText`], [`TextFault::Version`] for a version that Kafka does not know, and
/// [`TextFault::BrokerId`] or [`TextFault::NodeId`] for one without a number.
///
/// # Examples
/// ```
/// use ottla_log::sidefiles::meta_properties::read_meta_properties;
///
/// let file = b"#Wed Jan 01\nversion=1\ncluster.id=gR2xbv8nQDqJwUkBuE0a5A\nnode.id=1\n";
/// assert_eq!(read_meta_properties(file).unwrap()["cluster.id"], "gR2xbv8nQDqJwUkBuE0a5A");
/// ```
pub fn read_meta_properties(data: &[u8]) -> Result<BTreeMap<&str, &str>, TextError> {
    let mut properties = BTreeMap::new();
    for line in lines(text(data)?) {
        let is_comment = line.trim_start().starts_with(['#', '!']);
        if let Some((name, value)) = line.split_once('=').filter(|_| !is_comment) {
            properties.insert(name.trim(), value.trim());
        }
    }
    let value = |name: &str| properties.get(name).copied().unwrap_or("none");
    let (id, fault) = match value("version") {
        "0" => ("broker.id", TextFault::BrokerId),
        "1" => ("node.id", TextFault::NodeId),
        found => {
            let error = TextError::new(TextFault::Version, 1, "version=0 or version=1");
            return Err(error.found(found));
        }
    };
    if !is_number(value(id)) {
        return Err(TextError::new(fault, 1, format!("{id}=a number")).found(value(id)));
    }
    Ok(properties)
}

/// A release of Kafka, major and minor.
pub type Release = (u8, u8);

/// The first release with a quorum of its own, whose version of the file is 1 (KIP-500).
const QUORUM_SINCE: Release = (2, 8);
/// The first release that names each log directory (KIP-858).
const DIRECTORY_IDS_SINCE: Release = (3, 7);
/// The first release without `ZooKeeper`, whose version of the file was 0.
const ZOOKEEPER_BEFORE: Release = (4, 0);

/// The first release that may have written a file with these properties, and the first after the last
/// one; `None` where the properties leave it open.
///
/// # Examples
/// ```
/// use ottla_log::sidefiles::meta_properties::{read_meta_properties, release_bounds};
///
/// let properties = read_meta_properties(b"version=1\nnode.id=1\n").unwrap();
/// assert_eq!(release_bounds(&properties), (Some((2, 8)), None));
/// ```
pub fn release_bounds(properties: &BTreeMap<&str, &str>) -> (Option<Release>, Option<Release>) {
    match properties.get("version").copied() {
        Some("0") => (None, Some(ZOOKEEPER_BEFORE)),
        Some(_) if properties.contains_key("directory.id") => (Some(DIRECTORY_IDS_SINCE), None),
        Some(_) => (Some(QUORUM_SINCE), None),
        None => (None, None),
    }
}

/// Whether these are decimal digits of a number that fits 64 bits.
fn is_number(digits: &str) -> bool {
    digits.len() <= MAX_NUMBER_DIGITS
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && digits.parse::<i64>().is_ok()
}
