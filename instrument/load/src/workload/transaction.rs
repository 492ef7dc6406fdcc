//! The interface of a workload: kinds of transactions, the statements that they
//! consist of, and a generator for each session. Nothing here does input or output, and nothing
//! knows how a statement is encoded: that is a protocol's task.

use std::fmt::Debug;
use std::ops::{Index, IndexMut, Range};
use std::sync::Arc;

use rand::Rng;
use rand::rngs::SmallRng;

use super::statement::{Statement, StatementError};
use crate::dataset::Dataset;

/// The parameters of one transaction: a number for each slot. The workload decides what a slot
/// means; protocols and engines copy numbers from slots into requests. Inline, so that a
/// transaction allocates nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Parameters([i64; Parameters::SLOTS]);

impl Parameters {
    /// The most parameters that a transaction can have.
    pub const SLOTS: usize = 16;
}

impl Index<usize> for Parameters {
    type Output = i64;

    fn index(&self, slot: usize) -> &i64 {
        &self.0[slot]
    }
}

impl IndexMut<usize> for Parameters {
    fn index_mut(&mut self, slot: usize) -> &mut i64 {
        &mut self.0[slot]
    }
}

/// The numbers of the first slots; the others are 0.
impl<const N: usize> From<[i64; N]> for Parameters {
    fn from(numbers: [i64; N]) -> Self {
        let mut parameters = Self::default();
        parameters.0[..N].copy_from_slice(&numbers);
        parameters
    }
}

/// The language of the statements of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// Commands of a key-value server.
    KeyValue,
    /// Commands of the reference server's record service, and of engines that take them.
    Records,
    /// The language of the reference server's statement service.
    Statements,
    PostgreSql,
    MySql,
    Sqlite,
}

impl Language {
    /// Whether it is a database's: the named workloads of databases have data of their own.
    pub fn is_database(self) -> bool {
        self != Self::KeyValue
    }

    /// Whether servers of this language prepare statements, and so distinguish texts that are new.
    pub fn prepares(self) -> bool {
        matches!(self, Self::Statements | Self::PostgreSql | Self::MySql)
    }
}

/// Kinds of transactions, and the statements that they are made of.
pub trait Workload: Debug + Send + Sync {
    /// The kinds of transactions, at least one.
    fn kinds(&self) -> &[TransactionKind];

    /// How many sets of statements there are. They differ in the text of the statements alone (such
    /// as the names of tables). Session `n` uses set `n` modulo this number.
    fn sets(&self) -> usize {
        1
    }

    /// All statements that the sessions of a set execute. A protocol prepares them once a
    /// connection, in this order.
    fn statements(&self, set: usize) -> &[Statement];

    /// The generator of the transactions of a session.
    fn generator(&self, session: u64) -> Box<dyn Generator>;

    /// The key with this number as a kind of transaction asks for it, such as `user:17`; `None` if its
    /// statements name none.
    fn key(&self, _kind: usize, _number: i64) -> Option<String> {
        None
    }

    /// Warnings of this workload about a run with so many sessions.
    fn warnings(&self, _sessions: u64) -> Vec<String> {
        Vec::new()
    }
}

/// A workload as the command line selects it.
#[derive(Debug)]
pub struct Selection {
    pub workload: Arc<dyn Workload>,
    /// The data that it needs, if it needs any.
    pub dataset: Option<Arc<dyn Dataset>>,
    /// What fills the keys before the load, if that is asked for.
    pub prefill: Option<Prefill>,
}

/// Transactions that set each key of a workload once.
#[derive(Debug)]
pub struct Prefill {
    pub workload: Arc<dyn Workload>,
    /// How many there are; `None`: one for each session of the load.
    pub keys: Option<u64>,
    /// How many may be under way at once.
    pub pipeline: u32,
}

/// Why a workload cannot be selected.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum WorkloadError {
    /// An option that is wrong, or does not go with another one or with the server.
    #[error("{0}")]
    Options(String),
    #[error(transparent)]
    Statement(#[from] StatementError),
}

/// A kind of transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransactionKind {
    pub name: String,
    /// How often it is chosen, relative to the other kinds.
    pub weight: u32,
    /// A range of the workload's statements for each round trip: they are sent together, and the
    /// next range when they are answered.
    pub round_trips: Vec<Range<usize>>,
}

/// Draws the kind of a transaction in proportion to the weights; returns its index.
pub fn draw_kind(kinds: &[TransactionKind], random: &mut SmallRng) -> usize {
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

/// Generates the transactions of one session; several may be under way at once.
pub trait Generator: Send {
    /// Draws the parameters of a new transaction of a kind (an index into [`Workload::kinds`]).
    fn begin(&mut self, kind: usize, random: &mut SmallRng) -> Parameters;

    /// Takes the answer to a round trip (an index into [`TransactionKind::round_trips`]); may
    /// change parameters that later round trips use. `Some` ends the transaction. After `None` the
    /// next round trip follows, or the transaction has succeeded if that was the last.
    fn answered(
        &mut self,
        _kind: usize,
        _round_trip: usize,
        _parameters: &mut Parameters,
        answer: &Answer,
    ) -> Option<Ending> {
        match answer {
            Answer::Error(kind) => Some(Ending::Error(kind.clone())),
            Answer::Done(_) | Answer::Nothing => None,
        }
    }
}

/// The server's answer to a round trip: to its last statement, or the first error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Executed, with the number that the answer contains, if it contains one.
    Done(Option<i64>),
    /// Nothing was found: no such key, no row; or what was found is empty.
    Nothing,
    /// An error, as a short name of its kind: errors of the same kind have the same name.
    Error(String),
}

/// How a transaction ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    Ok,
    /// As it should, with an answer that holds nothing: a key that is not there, an empty value. The number
    /// of the key that was asked for.
    Empty(i64),
    /// The server answered as it should, but did not do what was asked: a lock is held by another
    /// client, a row does not exist.
    Refused,
    /// The server answered with an error of this kind.
    Error(String),
}
