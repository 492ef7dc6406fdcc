//! TPC-B and its relatives: a bank of branches, tellers and accounts, and a history of what was
//! done.
//!
//! - `tpcb-rw3`: document 004's. A READ and an UPDATE of a record in each of three files, and an
//!   INSERT in a fourth.
//! - `tpcb-strict`: the profile of the standard (TPC Benchmark B 2.0, clause 1.2).
//! - `tpcb-like`: what pgbench does under this name, with its SQL and its draws.
//! - `read` and `update`: one account, in a transaction of its own.
//! - `loop`: document 001's code loop: three reads, then an update and an insert in a transaction.
//!
//! One definition for all servers: a profile is a list of steps, and a [`Dialect`] says them.

use std::ops::Range;

use rand::rngs::SmallRng;

use super::statement::Piece;
use super::{Actor, Answer, Ending, Kind, Numbers, Statement, StatementError, Workload};
pub use profile::{Data, Profile};

use dialect::Dialect;
use draws::Draws;
use rows::Rows;

pub mod dialect;
mod draws;
mod filling;
mod profile;
pub mod records;
mod rows;
pub mod sql;
pub mod statements;
#[cfg(test)]
mod tests;

/// Places in [`Numbers`].
const AID: usize = 0;
const TID: usize = 1;
const BID: usize = 2;
const DELTA: usize = 3;
/// What was read last, and the delta.
const BALANCE: usize = 4;
/// The branch that the account belongs to.
const ACCOUNTS_BID: usize = 5;
/// The branch that the teller belongs to.
const TELLERS_BID: usize = 6;
/// µs since 1970.
const TIME: usize = 7;
/// A number that no other transaction has.
const ROW: usize = 8;
const PLACES: [(&str, usize); 9] = [
    ("aid", AID),
    ("tid", TID),
    ("bid", BID),
    ("delta", DELTA),
    ("balance", BALANCE),
    ("abid", ACCOUNTS_BID),
    ("tbid", TELLERS_BID),
    ("time", TIME),
    ("row", ROW),
];

/// Of each branch.
pub const TELLERS: i64 = 10;
/// Of each branch, by the standard.
pub const ACCOUNTS: u32 = 100_000;
/// Account numbers fit in 32 bits.
pub const SCALE_MAX: u32 = 20_000;
pub const FILES_MAX: u32 = 16;

/// How many round trips a transaction is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum RoundTrips {
    /// One for each statement.
    Each,
    /// One for all of them.
    One,
}

/// A share, in millionths.
const WHOLE: u32 = 1_000_000;

/// Why a workload cannot be had.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum TpcbError {
    #[error(
        "{0} in one round trip: here it writes back what it has read, so it must wait for that; --round-trips each"
    )]
    Dependent(&'static str),
    #[error(transparent)]
    Statement(#[from] StatementError),
}

/// The workload of a profile.
#[derive(Debug)]
pub struct Tpcb {
    data: Data,
    kinds: Vec<Kind>,
    /// By set.
    statements: Vec<Vec<Statement>>,
    tells_time: bool,
}

impl Tpcb {
    /// `new_share`, of the transactions: those whose statements are all texts that were never seen
    /// before.
    ///
    /// # Errors
    /// One round trip is asked for, and a statement needs the answer to another.
    pub fn new(
        data: Data,
        dialect: &dyn Dialect,
        trips: RoundTrips,
        new_share: f64,
    ) -> Result<Self, TpcbError> {
        let places = PLACES.map(|(name, place)| (name, vec![Piece::Number(place)]));
        let of_set = |set| {
            let steps = data.profile.steps().into_iter();
            let texts = steps.flat_map(|step| dialect.step(step, set));
            texts.map(|text| Statement::parse(&text, &places)).collect()
        };
        let statements: Vec<Vec<Statement>> = (1..=data.files)
            .map(of_set)
            .collect::<Result<_, StatementError>>()?;
        let uses = |place| {
            let pieces = statements.iter().flatten().flat_map(|it| &it.pieces);
            pieces
                .into_iter()
                .any(|piece| *piece == Piece::Number(place))
        };
        if trips == RoundTrips::One && uses(BALANCE) {
            return Err(TpcbError::Dependent(data.profile.name()));
        }
        let weight = (new_share * f64::from(WHOLE)).round() as u32;
        let name = data.profile.name();
        let mut tpcb = Self {
            data,
            kinds: Vec::new(),
            tells_time: uses(TIME),
            statements: vec![Vec::new(); statements.len()],
        };
        tpcb.add(name.to_owned(), WHOLE - weight, trips, &statements);
        let anew = |set: &Vec<Statement>| set.iter().map(|it| it.anew(ROW)).collect();
        let new: Vec<Vec<Statement>> = statements.iter().map(anew).collect();
        tpcb.add(format!("{name}-new"), weight, trips, &new);
        Ok(tpcb)
    }

    /// Adds a kind of transactions, unless it is never drawn: then nobody needs its statements.
    fn add(&mut self, name: String, weight: u32, trips: RoundTrips, by_set: &[Vec<Statement>]) {
        if weight == 0 {
            return;
        }
        let first = self.statements[0].len();
        for (own, more) in self.statements.iter_mut().zip(by_set) {
            own.extend_from_slice(more);
        }
        let trips = trips.of(first..self.statements[0].len());
        self.kinds.push(Kind {
            name,
            weight,
            trips,
        });
    }
}

impl RoundTrips {
    fn of(self, statements: Range<usize>) -> Vec<Range<usize>> {
        match self {
            Self::Each => statements.map(|it| it..it + 1).collect(),
            Self::One => vec![statements],
        }
    }
}

impl Workload for Tpcb {
    fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    fn sets(&self) -> usize {
        self.statements.len()
    }

    fn statements(&self, set: usize) -> &[Statement] {
        &self.statements[set]
    }

    fn actor(&self, session: u64) -> Box<dyn Actor> {
        Box::new(Teller {
            draws: Draws::of(&self.data),
            alone: !self.data.profile.is_transaction(),
            tells_time: self.tells_time,
            rows: Rows::of(session),
        })
    }
}

struct Teller {
    draws: Draws,
    /// A statement is all there is, and an answer that nothing was found ends it.
    alone: bool,
    tells_time: bool,
    rows: Rows,
}

impl Actor for Teller {
    fn begin(&mut self, _kind: usize, random: &mut SmallRng) -> Numbers {
        let mut numbers = self.draws.draw(random);
        if self.tells_time {
            numbers[TIME] = now_us();
        }
        numbers[ROW] = self.rows.next();
        numbers
    }

    fn heard(
        &mut self,
        _kind: usize,
        _trip: usize,
        numbers: &mut Numbers,
        answer: &Answer,
    ) -> Option<Ending> {
        match answer {
            Answer::Done(Some(balance)) => numbers[BALANCE] = balance + numbers[DELTA],
            Answer::Done(None) => {}
            // In a transaction it is what the others do that shows it to `verify`.
            Answer::Nothing if self.alone => return Some(Ending::Error("no such row".to_owned())),
            Answer::Nothing => {}
            Answer::Error(kind) => return Some(Ending::Error(kind.clone())),
        }
        None
    }
}

fn now_us() -> i64 {
    let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    since.as_micros() as i64
}
