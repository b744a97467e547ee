//! Checks every rule of a file of batches, such as a log segment: `cargo run --example check FILE`.
#![allow(clippy::print_stdout, reason = "a program")]

use ottla_format::batches::Batches;
use ottla_format::check::{Checker, Level};
use ottla_format::limits::Limits;
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: check FILE")?;
    let data = std::fs::read(path)?;
    for batch in Batches::new(&data, 0) {
        match batch {
            Ok(batch) => println!("{}: offset {}", batch.position, batch.base_offset),
            Err(fault) => println!("{fault}"),
        }
    }
    let records = Checker::new(Level::Full, Limits::default()).check_all(&data)?;
    println!("{records} records, and every rule is kept");
    Ok(())
}
