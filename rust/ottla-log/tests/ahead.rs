//! Results of threads that work ahead come in order, once each, and no more of them than may wait.

use ottla_log::ahead::Ahead;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

#[test]
fn results_come_in_order_once_each() {
    for threads in [0, 1, 2, 3, 9, 100] {
        for count in [0, 1, 2, 7, 100] {
            let begun = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&begun);
            let results = Ahead::new(count, threads, move |piece| {
                counted.fetch_add(1, Ordering::Relaxed);
                if piece % 3 == 0 {
                    std::thread::sleep(Duration::from_micros(50));
                }
                2 * piece
            });
            assert!(results.eq((0..count).map(|piece| (piece, 2 * piece))));
            assert_eq!(begun.load(Ordering::Relaxed), count);
        }
    }
}

#[test]
fn no_more_is_done_than_may_wait() {
    let (begin, begun) = mpsc::channel();
    let mut results = Ahead::new(1000, 2, move |piece| {
        let _ = begin.send(piece);
    });
    assert_eq!(results.next(), Some((0, ())));
    let mut count = 0;
    while begun.recv_timeout(Duration::from_millis(200)).is_ok() {
        count += 1;
    }
    assert!(count < 12, "{count} pieces were done ahead");
    drop(results);
    // The threads end, and with them the work.
    while begun.recv().is_ok() {}
}

#[test]
fn a_piece_that_panics_comes_to_the_default() {
    let results = Ahead::new(4, 2, |piece| {
        assert_ne!(piece, 2);
        piece + 1
    });
    assert!(results.eq([(0, 1), (1, 2), (2, 0), (3, 4)]));
}
