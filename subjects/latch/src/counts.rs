//! Reading the threads' counters while they run.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::board::Board;
use crate::class::Class;
use crate::seat::Tally;

/// What happened to latches of one class since the board was made, in all processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counts {
    pub name: String,
    /// How often a thread took one, or tried to.
    pub acquisitions: u64,
    /// How often another thread held it at the first try.
    pub waits: u64,
    /// Checks of a taken latch before sleeping.
    pub spins: u64,
    /// How often a thread slept for one.
    pub sleeps: u64,
    /// How many are held, approximately.
    pub held: u64,
}

/// The counts of each class that was used: sums over the threads, which are read one after the
/// other.
pub fn counts() -> Vec<Counts> {
    let board = Board::get();
    let all = board.names.all().map(|(class, name)| {
        let sum = |field: fn(&Tally) -> &AtomicU64| -> u64 {
            let each = board
                .ever_taken()
                .map(|it| field(it.tally(class)).load(Relaxed));
            each.fold(0, u64::wrapping_add)
        };
        Counts {
            name,
            acquisitions: sum(|it| &it.begun),
            waits: sum(|it| &it.waits),
            spins: sum(|it| &it.spins),
            sleeps: sum(|it| &it.sleeps),
            held: board.ever_taken().map(|it| it.tally(class).held()).sum(),
        }
    });
    all.filter(|it| it.acquisitions > 0).collect()
}

/// The classes, and how many of each, of latches that an engine's threads hold or are taking. Exact
/// once its process has ended.
pub fn held(engine: u32) -> Vec<(String, u64)> {
    let board = Board::get();
    let of_engine = |class: Class| -> u64 {
        board
            .taken()
            .filter(|it| it.engine.load(Relaxed) == engine)
            .map(|it| it.tally(class).held())
            .sum()
    };
    board
        .names
        .all()
        .map(|(class, name)| (name, of_engine(class)))
        .filter(|(_, number)| *number > 0)
        .collect()
}
