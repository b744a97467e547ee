#![no_main]
//! Arbitrary names of files and directories, and arbitrary files of text beside a log: each is read or
//! refused within bounds, and what a name says makes the same name again.

use libfuzzer_sys::fuzz_target;
use ottla_fuzz::bounded;
use ottla_log::names::{DirectoryKind, FileName, PartitionName, offset_of};
use ottla_log::sidefiles::checkpoint::{check_order, read_leader_epochs, read_offset_checkpoint};
use ottla_log::sidefiles::meta_properties::read_meta_properties;
use ottla_log::sidefiles::metadata::read_partition_metadata;

fuzz_target!(|data: &[u8]| {
    bounded(data.len(), || {
        let names: Vec<&[u8]> = data.split(|&byte| byte == 0).collect();
        for name in &names {
            let _ = FileName::parse(name);
            let _ = offset_of(name);
            if let Some(partition) = PartitionName::parse(name) {
                assert!(partition.partition >= 0);
                assert!(!partition.topic.is_empty());
            }
        }
        let _ = DirectoryKind::of(names.iter().copied());
        let _ = read_offset_checkpoint(data);
        if let Ok(epochs) = read_leader_epochs(data) {
            let _ = check_order(&epochs);
        }
        let _ = read_meta_properties(data);
        let _ = read_partition_metadata(data);
    });
});
