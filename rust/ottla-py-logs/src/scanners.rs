//! The scanners of a thread.

use ottla_audit::Scanner;
use ottla_format::check::Level;
use ottla_format::limits::Limits;
use std::cell::Cell;

thread_local! {
    /// Scanners hold a window and codecs: each thread keeps one of a level for its next file.
    static IDLE: Cell<Vec<(Level, Scanner)>> = const { Cell::new(Vec::new()) };
}

/// Works with a scanner of this level, which is taken out for that time: Python, called on the way for
/// progress or bytes, may scan too, with another scanner.
pub(crate) fn with_scanner<T>(level: Level, work: impl FnOnce(&mut Scanner) -> T) -> T {
    let mut idle = IDLE.take();
    let known = idle.iter().position(|(known, _)| *known == level);
    let scanner = known.map(|index| idle.swap_remove(index).1);
    IDLE.set(idle);
    let mut scanner = scanner.unwrap_or_else(|| Scanner::new(level, Limits::default()));
    let result = work(&mut scanner);
    let mut idle = IDLE.take();
    if idle.iter().all(|(known, _)| *known != level) {
        idle.push((level, scanner));
    }
    IDLE.set(idle);
    result
}
