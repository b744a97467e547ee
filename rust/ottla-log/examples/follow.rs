//! Follows a log segment batch by batch, past damage: `cargo run --example follow FILE`.
#![allow(clippy::print_stdout, reason = "a program")]

use ottla_log::framing::{Range, Stop, follow_batches};
use ottla_log::resync::first_batch;
use ottla_log::source::Source;
use std::error::Error;
use std::fs::File;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: follow FILE")?;
    let file = File::open(path)?;
    let size = file.size()?;
    let (mut position, mut next_offset) = (0, 0);
    while position < size {
        let range =
            Range { position, stop: size, max_bytes: u64::MAX, next_offset: None, has_holes: true };
        let found = follow_batches(&file, range, 65536)?;
        println!(
            "{position} to {}: {} batches, then {}",
            found.end,
            found.batches,
            found.stop.name()
        );
        next_offset = found.next_offset.unwrap_or(next_offset);
        if found.stop == Stop::End {
            break;
        }
        match first_batch(&file, found.end + 1, next_offset)? {
            Some(next) => position = next,
            None => break,
        }
    }
    println!("the next offset is {next_offset}");
    Ok(())
}
