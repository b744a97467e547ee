//! Where partitions are: by the name of their topic, by its id, and the errors they are refused with.

use crate::wire::{TopicId, TopicKey};
use std::collections::HashMap;
use std::sync::Arc;

/// A partition of a plane. No number is used twice.
pub type Handle = u32;

/// The id of no topic.
const NO_ID: TopicId = [0; 16];

/// A topic with the partitions that are here.
#[derive(Debug)]
pub(crate) struct Topic {
    pub(crate) name: Arc<[u8]>,
    id: TopicId,
    partitions: HashMap<i32, Handle>,
}

impl Topic {
    pub(crate) fn partition(&self, index: i32) -> Option<Handle> {
        self.partitions.get(&index).copied()
    }
}

/// All topics.
#[derive(Debug, Default)]
pub(crate) struct Topics {
    by_name: HashMap<Arc<[u8]>, Topic>,
    names: HashMap<TopicId, Arc<[u8]>>,
}

impl Topics {
    pub(crate) fn find(&self, key: TopicKey<'_>) -> Option<&Topic> {
        match key {
            TopicKey::Name(name) => self.by_name.get(name),
            TopicKey::Id(id) => self.by_name.get(self.names.get(&id)?),
        }
    }

    /// The id of a topic.
    pub(crate) fn id_of(&self, name: &[u8]) -> Option<TopicId> {
        self.by_name.get(name).map(|topic| topic.id)
    }

    /// Adds a partition. Returns its topic's name, or `None` where it is here already, or the topic
    /// has another id.
    pub(crate) fn add(
        &mut self,
        name: &[u8],
        id: TopicId,
        index: i32,
        handle: Handle,
    ) -> Option<Arc<[u8]>> {
        let named = self.names.get(&id).is_some_and(|other| &**other != name);
        let known = self.by_name.get(name);
        let is_there =
            known.is_some_and(|topic| topic.id != id || topic.partitions.contains_key(&index));
        if named || is_there {
            return None;
        }
        let name: Arc<[u8]> = known.map_or_else(|| name.into(), |topic| topic.name.clone());
        let topic = self.by_name.entry(name.clone()).or_insert_with(|| Topic {
            name: name.clone(),
            id,
            partitions: HashMap::new(),
        });
        topic.partitions.insert(index, handle);
        if id != NO_ID {
            self.names.insert(id, name.clone());
        }
        Some(name)
    }

    /// Takes a partition away, and its topic with the last one.
    pub(crate) fn remove(&mut self, name: &[u8], index: i32) {
        let Some(topic) = self.by_name.get_mut(name) else { return };
        topic.partitions.remove(&index);
        if topic.partitions.is_empty() {
            self.names.remove(&topic.id);
            self.by_name.remove(name);
        }
    }
}

/// Errors that partitions are answered with, whatever is asked of them: what is not authorised, and
/// what a test wants to fail.
#[derive(Clone, Debug, Default)]
pub struct Refused {
    codes: HashMap<Vec<u8>, HashMap<i32, i16>>,
}

impl Refused {
    /// Refuses a partition with a code of the protocol.
    pub fn add(&mut self, topic: &[u8], index: i32, error_code: i16) {
        self.codes.entry(topic.to_vec()).or_default().insert(index, error_code);
    }

    pub(crate) fn code(&self, topic: &[u8], index: i32) -> Option<i16> {
        if self.codes.is_empty() {
            return None;
        }
        self.codes.get(topic)?.get(&index).copied()
    }
}
