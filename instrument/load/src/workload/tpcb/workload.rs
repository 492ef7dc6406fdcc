//! The workload of a profile: its statements, and the generator of its transactions.

use std::ops::Range;

use rand::rngs::SmallRng;

use super::dialect::Dialect;
use super::parameters::{BALANCE, DELTA, Draws, PLACEHOLDERS, ROW, Rows, TIME};
use super::profile::{BankData, Table};
use crate::workload::{
    Answer, Ending, Generator, Parameters, Piece, Statement, TransactionKind, Workload,
    WorkloadError,
};

/// The sum of the weights of the two kinds of transactions.
const WHOLE: u32 = 1_000_000;

/// How many round trips a transaction is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum RoundTrips {
    /// One for each statement.
    Each,
    /// One for all of them.
    One,
}

/// The workload of a profile.
#[derive(Debug)]
pub struct Tpcb {
    data: BankData,
    kinds: Vec<TransactionKind>,
    /// By set.
    statements: Vec<Vec<Statement>>,
    uses_time: bool,
    uses_rows: bool,
}

impl Tpcb {
    /// `new_share` is the share of the transactions whose statements are all texts that were never
    /// seen before.
    ///
    /// # Errors
    /// One round trip is asked for, and a statement needs the answer to another.
    pub fn new(
        data: BankData,
        dialect: &dyn Dialect,
        round_trips: RoundTrips,
        new_share: f64,
    ) -> Result<Self, WorkloadError> {
        let placeholders = PLACEHOLDERS.map(|(name, slot)| (name, vec![Piece::Parameter(slot)]));
        let of_set = |set| {
            let steps = data.profile.steps().into_iter();
            let texts = steps.flat_map(|step| dialect.step(step, set));
            texts
                .map(|text| Statement::parse(&text, &placeholders))
                .collect()
        };
        let statements: Vec<Vec<Statement>> =
            (1..=data.files).map(of_set).collect::<Result<_, _>>()?;
        let uses = |slot| {
            let mut pieces = statements.iter().flatten().flat_map(|it| &it.pieces);
            pieces.any(|piece| *piece == Piece::Parameter(slot))
        };
        let name = data.profile.name();
        if round_trips == RoundTrips::One && uses(BALANCE) {
            return Err(WorkloadError::Options(format!(
                "{name} in one round trip: here it writes back what it has read, so it must wait for that; --round-trips each"
            )));
        }
        let weight = (new_share * f64::from(WHOLE)).round() as u32;
        let mut tpcb = Self {
            data,
            kinds: Vec::new(),
            uses_time: uses(TIME),
            uses_rows: uses(ROW) || weight > 0,
            statements: vec![Vec::new(); statements.len()],
        };
        tpcb.add(name.to_owned(), WHOLE - weight, round_trips, &statements);
        let with_new_texts =
            |set: &Vec<Statement>| set.iter().map(|it| it.with_new_text(ROW)).collect();
        let new: Vec<Vec<Statement>> = statements.iter().map(with_new_texts).collect();
        tpcb.add(format!("{name}-new"), weight, round_trips, &new);
        Ok(tpcb)
    }

    /// Adds a kind of transactions, unless its weight is 0: then its statements are not needed.
    fn add(
        &mut self,
        name: String,
        weight: u32,
        round_trips: RoundTrips,
        by_set: &[Vec<Statement>],
    ) {
        if weight == 0 {
            return;
        }
        let first = self.statements[0].len();
        for (own, more) in self.statements.iter_mut().zip(by_set) {
            own.extend_from_slice(more);
        }
        self.kinds.push(TransactionKind {
            name,
            weight,
            round_trips: round_trips.of(first..self.statements[0].len()),
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
    fn kinds(&self) -> &[TransactionKind] {
        &self.kinds
    }

    fn sets(&self) -> usize {
        self.statements.len()
    }

    fn statements(&self, set: usize) -> &[Statement] {
        &self.statements[set]
    }

    fn generator(&self, session: u64) -> Box<dyn Generator> {
        Box::new(TpcbGenerator {
            draws: Draws::of(&self.data),
            is_single_statement: !self.data.profile.is_transaction(),
            uses_time: self.uses_time,
            uses_rows: self.uses_rows,
            rows: Rows::of(session),
        })
    }

    /// More sessions than branches.
    fn warnings(&self, sessions: u64) -> Vec<String> {
        let scale = sessions.div_ceil(u64::from(self.data.files));
        let updates_branches = self.data.profile.changes().contains(&Table::Branches);
        if !updates_branches || u64::from(self.data.scale) >= scale {
            return Vec::new();
        }
        vec![format!(
            "more sessions than branches: they wait for each other whatever the database can do; --scale {scale} has one for each"
        )]
    }
}

struct TpcbGenerator {
    draws: Draws,
    /// Then an answer that no row was found is an error.
    is_single_statement: bool,
    uses_time: bool,
    uses_rows: bool,
    rows: Rows,
}

impl Generator for TpcbGenerator {
    fn begin(&mut self, _kind: usize, random: &mut SmallRng) -> Parameters {
        let mut parameters = self.draws.draw(random);
        if self.uses_time {
            parameters[TIME] = now_us();
        }
        if self.uses_rows {
            parameters[ROW] = self.rows.next();
        }
        parameters
    }

    fn answered(
        &mut self,
        _kind: usize,
        _round_trip: usize,
        parameters: &mut Parameters,
        answer: &Answer,
    ) -> Option<Ending> {
        match answer {
            Answer::Done(Some(balance)) => parameters[BALANCE] = balance + parameters[DELTA],
            Answer::Done(None) => {}
            Answer::Nothing if self.is_single_statement => {
                return Some(Ending::Error("no such row".to_owned()));
            }
            // The other statements of the transaction change the sums that `--verify` compares.
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
