//! Pieces of work that threads do ahead of whoever takes their results in order.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Results that may wait to be taken, for each thread: they are held in memory.
const WAITING_EACH: usize = 4;

/// The results of pieces of work with their numbers, in order.
///
/// Who takes them works too instead of waiting, so that one thread less is started than work. Threads
/// that the system does not give leave more for the others.
#[derive(Debug)]
pub struct Ahead<T> {
    shared: Arc<Shared<T>>,
    count: usize,
    next: usize,
}

struct Shared<T> {
    work: Box<dyn Fn(usize) -> T + Send + Sync>,
    pieces: Mutex<Pieces<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct Pieces<T> {
    /// The first piece that nobody has begun.
    next: usize,
    /// Pieces from here on are not begun yet.
    limit: usize,
    done: BTreeMap<usize, T>,
}

impl<T: Default + Send + 'static> Ahead<T> {
    /// Begins with so many pieces, each of which `work` does by its number. One that panics comes to the
    /// default.
    pub fn new(
        count: usize,
        threads: usize,
        work: impl Fn(usize) -> T + Send + Sync + 'static,
    ) -> Self {
        let waiting = threads.max(1).saturating_mul(WAITING_EACH);
        let pieces = Pieces { next: 0, limit: waiting.min(count), done: BTreeMap::new() };
        let shared = Arc::new(Shared {
            work: Box::new(work),
            pieces: Mutex::new(pieces),
            changed: Condvar::new(),
        });
        for _ in 1..threads.min(count) {
            let shared = Arc::clone(&shared);
            if thread::Builder::new().spawn(move || shared.work_ahead(count)).is_err() {
                break;
            }
        }
        Self { shared, count, next: 0 }
    }
}

impl<T: Default> Iterator for Ahead<T> {
    type Item = (usize, T);

    fn next(&mut self) -> Option<(usize, T)> {
        if self.next == self.count {
            return None;
        }
        let wanted = self.next;
        self.next = wanted.saturating_add(1);
        let mut pieces = self.shared.locked();
        loop {
            if let Some(done) = pieces.done.remove(&wanted) {
                pieces.limit = pieces.limit.saturating_add(1).min(self.count);
                self.shared.changed.notify_all();
                return Some((wanted, done));
            }
            pieces = match pieces.begin() {
                Some(piece) => self.shared.finish(piece, pieces),
                None => self.shared.wait(pieces),
            };
        }
    }
}

impl<T> Drop for Ahead<T> {
    fn drop(&mut self) {
        self.shared.locked().next = self.count;
        self.shared.changed.notify_all();
    }
}

impl<T> Pieces<T> {
    fn begin(&mut self) -> Option<usize> {
        let piece = self.next;
        (piece < self.limit).then(|| {
            self.next = piece.saturating_add(1);
            piece
        })
    }
}

impl<T> Shared<T> {
    /// Nothing panics under the lock.
    fn locked(&self) -> MutexGuard<'_, Pieces<T>> {
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, pieces: MutexGuard<'a, Pieces<T>>) -> MutexGuard<'a, Pieces<T>> {
        self.changed.wait(pieces).unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Default> Shared<T> {
    fn work_ahead(&self, count: usize) {
        let mut pieces = self.locked();
        while pieces.next < count {
            pieces = match pieces.begin() {
                Some(piece) => self.finish(piece, pieces),
                None => self.wait(pieces),
            };
        }
    }

    /// Does a piece that has begun, without the lock.
    fn finish<'a>(
        &'a self,
        piece: usize,
        pieces: MutexGuard<'a, Pieces<T>>,
    ) -> MutexGuard<'a, Pieces<T>> {
        drop(pieces);
        let done = catch_unwind(AssertUnwindSafe(|| (self.work)(piece))).unwrap_or_default();
        let mut pieces = self.locked();
        pieces.done.insert(piece, done);
        self.changed.notify_all();
        pieces
    }
}

impl<T> std::fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}
