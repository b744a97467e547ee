//! Scans partition directories and prints their findings, one JSON object a line; a summary of each
//! partition goes to standard error.
//!
//! ```text
//! cargo run --release --example scan -- DIRECTORY…
//! ```
#![allow(clippy::print_stdout, clippy::print_stderr)]

use ottla_audit::{
    Finding, PartitionContext, Scanner, SegmentContext, SegmentScan, merge_partition,
};
use ottla_format::check::Level;
use ottla_format::limits::Limits;
use std::error::Error;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

fn main() -> Result<(), Box<dyn Error>> {
    let mut level = Level::Full;
    for argument in std::env::args_os().skip(1) {
        if let Some(name) = argument.to_str().and_then(|text| text.strip_prefix("--level=")) {
            level = Level::from_name(name).unwrap_or(level);
            continue;
        }
        visit(Path::new(&argument), level)?;
    }
    Ok(())
}

fn visit(path: &Path, level: Level) -> Result<(), Box<dyn Error>> {
    let mut inside: Vec<PathBuf> =
        fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    inside.sort();
    let logs: Vec<(i64, PathBuf)> =
        inside.iter().filter_map(|file| Some((base_of(file)?, file.clone()))).collect();
    if !logs.is_empty() {
        partition(path, &logs, &inside, level)?;
    }
    for directory in inside.iter().filter(|path| path.is_dir()) {
        visit(directory, level)?;
    }
    Ok(())
}

fn base_of(file: &Path) -> Option<i64> {
    let name = file.file_name()?.to_str()?;
    name.strip_suffix(".log")?.parse().ok()
}

fn partition(
    path: &Path,
    logs: &[(i64, PathBuf)],
    inside: &[PathBuf],
    level: Level,
) -> Result<(), Box<dyn Error>> {
    let now_ms =
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as i64);
    let above = path.parent().unwrap_or(path);
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let is_consumer_offsets = name.starts_with("__consumer_offsets-");
    let mut scanner = Scanner::new(level, Limits::default());
    let mut scans: Vec<SegmentScan> = Vec::new();
    let started = Instant::now();
    for (index, (base, file)) in logs.iter().enumerate() {
        let context = SegmentContext {
            base_offset: Some(*base),
            next_base_offset: logs.get(index + 1).map(|(next, _)| *next),
            is_active: index + 1 == logs.len(),
            stopped_cleanly: above.join(".kafka_cleanshutdown").exists(),
            is_consumer_offsets,
            now_ms,
            is_compared: false,
        };
        let source = fs::File::open(file)?;
        scans.push(scanner.scan(&source, context, &mut |_| true, None)?);
    }
    let seconds = started.elapsed().as_secs_f64();
    let orphans = inside
        .iter()
        .filter(|file| file.extension().is_some_and(|extension| extension == "index"))
        .filter_map(|file| file.file_stem()?.to_str()?.parse::<i64>().ok())
        .filter(|base| logs.iter().all(|(known, _)| known != base))
        .collect();
    let log_start_offset = log_start(&above.join("log-start-offset-checkpoint"), &name);
    let context = PartitionContext {
        log_start_offset,
        is_consumer_offsets,
        orphans,
        ..PartitionContext::default()
    };
    let found = merge_partition(scans, &context);
    eprintln!(
        "{}: {} segments, {} batches, {} records, offsets {} to {}, stable to {}, {:.2} GB/s",
        path.display(),
        found.segments.len(),
        found.counters.batches,
        found.counters.records,
        found.log_start_offset,
        found.log_end_offset,
        found.last_stable_offset,
        found.counters.bytes as f64 / 1e9 / seconds,
    );
    for placed in &found.findings {
        let file = logs.get(placed.segment).map(|(_, file)| file.clone()).unwrap_or_default();
        println!("{}", json(&placed.finding, &file));
    }
    Ok(())
}

fn log_start(file: &Path, partition: &str) -> Option<i64> {
    let (topic, number) = partition.rsplit_once('-')?;
    fs::read_to_string(file).ok()?.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let is_this = words.next() == Some(topic) && words.next() == Some(number);
        is_this.then(|| words.next()?.parse().ok())?
    })
}

fn json(finding: &Finding, file: &Path) -> String {
    let text = |value: &str| format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""));
    let number = |value: Option<i64>| value.map_or("null".to_owned(), |value| value.to_string());
    format!(
        "{{\"name\": {}, \"severity\": {}, \"file\": {}, \"position\": {}, \"size\": {}, \"first_offset\": {}, \"last_offset\": {}, \"record_index\": {}, \"producer_id\": {}, \"next_good_offset\": {}, \"cause\": {}, \"expected\": {}, \"found\": {}, \"message\": {}}}",
        text(finding.kind.name()),
        text(finding.severity.name()),
        text(&file.to_string_lossy()),
        number(finding.position.map(|position| position as i64)),
        number(finding.size.map(|size| size as i64)),
        number(finding.first_offset),
        number(finding.last_offset),
        number(finding.record_index.map(i64::from)),
        number(finding.producer_id),
        number(finding.next_good_offset),
        finding.cause.map_or("null".to_owned(), |cause| text(cause.name())),
        text(&finding.expected),
        text(&finding.found),
        text(&finding.message.text()),
    )
}
