//! Builds a batch of three records, and reads its header: `cargo run --example build`.
#![allow(clippy::print_stdout, reason = "a program")]

use ottla_format::attributes::Compression;
use ottla_format::batches::Batches;
use ottla_format::builder::{BatchFields, NewRecord, build_batch};
use ottla_format::compression::Codecs;
use ottla_format::limits::Limits;
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let values: [&[u8]; 3] = [b"apples", b"pears", b"plums"];
    let records = values.map(|value| NewRecord { value: Some(value), ..NewRecord::default() });
    let fields = BatchFields { compression: Compression::Zstd, ..BatchFields::default() };
    let batch = build_batch(&fields, &records, &mut Codecs::new(Limits::default()))?;
    for header in Batches::new(&batch, 0) {
        let header = header?;
        let records = header.record_count.unwrap_or_default();
        println!("{records} records in {} bytes, by {:?}", batch.len(), header.compression()?);
    }
    Ok(())
}
