//! Compares the cost of latches with those of `parking_lot` and the standard library; prints one
//! JSON object.
//!
//! `latch_costs ROUNDS` measures, in so many interleaved rounds, groups of operations on a mutex
//! and on a lock for readers and writers: by one thread, and by two threads on one latch. Values
//! are ns an operation (lock and unlock), one for each round. `parking_lot_again` is measured as
//! the others are: its difference from `parking_lot` is noise.

use std::hint::{black_box, spin_loop};
use std::time::Instant;

use concurve_latch::Class;

/// Operations timed together.
const GROUP: u32 = 200_000;

/// Spins of a thread between two operations, if two threads compete: about as long as a part of a
/// request.
const WORK: u32 = 20;

fn main() {
    let rounds = std::env::args()
        .nth(1)
        .map_or(3, |it| it.parse().expect("rounds"));
    let (ours, ours_rw) = (
        Class::named("ours").mutex(0_u64),
        Class::named("rw").rwlock(0_u64),
    );
    let (std, std_rw) = (std::sync::Mutex::new(0_u64), std::sync::RwLock::new(0_u64));
    let (parking, parking_rw) = (
        parking_lot::Mutex::new(0_u64),
        parking_lot::RwLock::new(0_u64),
    );
    let mutexes: [(&str, &(dyn Fn() + Sync)); 4] = [
        ("concurve", &|| *ours.lock() += 1),
        ("std", &|| *std.lock().expect("no panic") += 1),
        ("parking_lot", &|| *parking.lock() += 1),
        ("parking_lot_again", &|| *parking.lock() += 1),
    ];
    let readers: [(&str, &(dyn Fn() + Sync)); 4] = [
        ("concurve", &|| drop(black_box(ours_rw.read()))),
        ("std", &|| drop(black_box(std_rw.read()))),
        ("parking_lot", &|| drop(black_box(parking_rw.read()))),
        ("parking_lot_again", &|| drop(black_box(parking_rw.read()))),
    ];
    let figures = [
        ("mutex", time(rounds, 1, &mutexes)),
        ("mutex_two_threads", time(rounds, 2, &mutexes)),
        ("read", time(rounds, 1, &readers)),
        ("read_two_threads", time(rounds, 2, &readers)),
    ];
    let lines = figures.map(|(name, kinds)| format!("\"{name}\": {{{kinds}}}"));
    println!("{{{}}}", lines.join(",\n "));
}

/// JSON members: for each kind its rounds.
fn time(rounds: usize, threads: u32, kinds: &[(&str, &(dyn Fn() + Sync))]) -> String {
    let mut taken = vec![Vec::new(); kinds.len()];
    for round in 0..rounds {
        // Each kind is the first in one round of so many.
        for at in 0..kinds.len() {
            let kind = (at + round) % kinds.len();
            taken[kind].push(group(threads, kinds[kind].1));
        }
    }
    let members = kinds.iter().zip(&taken);
    let members: Vec<_> = members
        .map(|((name, _), rounds)| format!("\"{name}\": {rounds:.2?}"))
        .collect();
    members.join(", ")
}

/// ns an operation. If several threads compete, each spins between two operations.
fn group(threads: u32, operation: &(dyn Fn() + Sync)) -> f64 {
    let pause = if threads > 1 { WORK } else { 0 };
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                for _ in 0..GROUP {
                    operation();
                    (0..pause).for_each(|_| spin_loop());
                }
            });
        }
    });
    begin.elapsed().as_nanos() as f64 / f64::from(GROUP * threads)
}
