//! What the sessions ask for: one module a workload. Without any input or output, and without a
//! word of how it is said: that is a protocol's.

use std::fmt::Debug;
use std::ops::Range;

use rand::Rng;
use rand::rngs::SmallRng;

pub mod keys;
pub mod script;
pub mod statement;
pub mod tpcb;
pub mod words;

pub use statement::{Statement, StatementError};

/// The numbers that one transaction puts into its statements, by the slots of these.
pub type Numbers = [i64; 9];

/// Kinds of transactions, and the statements that they are made of.
pub trait Workload: Debug + Send + Sync {
    fn kinds(&self) -> &[Kind];

    /// How many sets of statements there are, which differ in their text alone. A session keeps to
    /// one: that of its number, counted round.
    fn sets(&self) -> usize {
        1
    }

    /// Everything that may be asked by the sessions of a set. A protocol prepares them once a
    /// connection, in this order.
    fn statements(&self, set: usize) -> &[Statement];

    /// Who plays the transactions of a session, with its own numbers.
    fn actor(&self, session: u64) -> Box<dyn Actor>;
}

/// A kind of transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kind {
    pub name: String,
    /// How often it is chosen, compared with the other kinds.
    pub weight: u32,
    /// Statements that are asked together, then the next ones when they are answered: as many
    /// round trips as there are ranges.
    pub trips: Vec<Range<usize>>,
}

/// Draws the kind of a transaction, each as often as its weight says.
pub fn draw(kinds: &[Kind], random: &mut SmallRng) -> usize {
    if kinds.len() == 1 {
        return 0;
    }
    let weights = kinds.iter().map(|kind| kind.weight).sum();
    let mut ticket = random.random_range(0..weights);
    let chosen = kinds.iter().position(|kind| {
        let found = ticket < kind.weight;
        ticket = ticket.saturating_sub(kind.weight);
        found
    });
    chosen.unwrap_or(0)
}

/// Plays the transactions of one session; several may be under way at once.
pub trait Actor: Send {
    /// Draws the numbers of a new transaction.
    fn begin(&mut self, kind: usize, random: &mut SmallRng) -> Numbers;

    /// Hears the answer to a trip, and may change the numbers of those that follow. An ending ends
    /// the transaction; without one the next trip is asked, or it has ended well.
    fn heard(
        &mut self,
        _kind: usize,
        _trip: usize,
        _numbers: &mut Numbers,
        answer: &Answer,
    ) -> Option<Ending> {
        match answer {
            Answer::Error(kind) => Some(Ending::Error(kind.clone())),
            Answer::Done(_) | Answer::Nothing => None,
        }
    }
}

/// What the server said to a trip: to its last statement, or the first error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Done, with the number that came with it, if one did.
    Done(Option<i64>),
    /// There is none: no such key, no row.
    Nothing,
    /// An error of this kind, in a few words that are alike for errors that are alike.
    Error(String),
}

/// How a transaction ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    Ok,
    /// The server answered, and the answer was no: a lock is taken, a row is not there.
    Refused,
    /// The server answered with an error of this kind.
    Error(String),
}
