//! Reading what the threads counted, while they run.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::board::Board;
use crate::seat::{Tally, ever_taken, taken};

/// What happened to latches of one class since the board was made, in all processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counts {
    pub name: String,
    /// How often one was taken, or tried to be.
    pub acquisitions: u64,
    /// How often it was taken by somebody else at first.
    pub waits: u64,
    /// Looks at a taken one.
    pub spins: u64,
    /// How often somebody slept for one.
    pub sleeps: u64,
    /// How many were held about now.
    pub held: u64,
}

/// The counts of each class that was used. Sums over the threads, read one after the other.
pub fn counts() -> Vec<Counts> {
    let board = Board::get();
    let all = board.names.all().map(|(place, name)| {
        let sum = |field: fn(&Tally) -> &AtomicU64| -> u64 {
            let each = ever_taken().map(|it| field(&it.tallies[place]).load(Relaxed));
            each.fold(0, u64::wrapping_add)
        };
        Counts {
            name,
            acquisitions: sum(|it| &it.begun),
            waits: sum(|it| &it.waits),
            spins: sum(|it| &it.spins),
            sleeps: sum(|it| &it.sleeps),
            held: ever_taken().map(|it| it.tallies[place].held()).sum(),
        }
    });
    all.filter(|it| it.acquisitions > 0).collect()
}

/// The classes, and how many of each, of latches that an engine's threads hold or were just taking.
/// Exact once its process has ended.
pub fn held(engine: u32) -> Vec<(String, u64)> {
    let board = Board::get();
    let of_engine = |place: usize| -> u64 {
        taken()
            .filter(|it| it.engine.load(Relaxed) == engine)
            .map(|it| it.tallies[place].held())
            .sum()
    };
    board
        .names
        .all()
        .map(|(place, name)| (name, of_engine(place)))
        .filter(|(_, number)| *number > 0)
        .collect()
}
