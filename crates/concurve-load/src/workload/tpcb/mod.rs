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

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    fn data(profile: Profile, files: u32) -> Data {
        Data {
            profile,
            scale: 2,
            accounts: ACCOUNTS,
            files,
        }
    }

    fn statement(text: &str) -> Statement {
        let places = PLACES.map(|(name, place)| (name, vec![Piece::Number(place)]));
        Statement::parse(text, &places).unwrap()
    }

    #[test]
    fn tpcb_like_is_what_pgbench_says() {
        let like = Tpcb::new(
            data(Profile::Like, 1),
            &sql::POSTGRES,
            RoundTrips::Each,
            0.0,
        )
        .unwrap();
        let expected = [
            "BEGIN",
            "UPDATE concurve.accounts_1 SET abalance = abalance + {delta} WHERE aid = {aid}",
            "SELECT abalance FROM concurve.accounts_1 WHERE aid = {aid}",
            "UPDATE concurve.tellers_1 SET tbalance = tbalance + {delta} WHERE tid = {tid}",
            "UPDATE concurve.branches_1 SET bbalance = bbalance + {delta} WHERE bid = {bid}",
            "INSERT INTO concurve.history_1 (tid, bid, aid, delta, mtime) VALUES ({tid}, {bid}, {aid}, {delta}, CURRENT_TIMESTAMP)",
            "END",
        ];
        assert_eq!(like.statements(0), expected.map(statement));
        assert_eq!(like.kinds()[0].trips.len(), 7);
    }

    #[test]
    fn rw3_reads_and_updates_three_files_and_inserts_in_a_fourth() {
        let rw3 = Tpcb::new(data(Profile::Rw3, 1), &sql::SQLITE, RoundTrips::One, 0.0).unwrap();
        let verbs = |it: &Statement| match &it.pieces[0] {
            Piece::Text(text) => text.split(' ').next().map(str::to_owned),
            _ => None,
        };
        let verbs: Vec<String> = rw3.statements(0).iter().filter_map(verbs).collect();
        let expected = "BEGIN SELECT UPDATE SELECT UPDATE SELECT UPDATE INSERT END";
        assert_eq!(verbs.join(" "), expected);
        assert_eq!(
            rw3.kinds()[0].trips,
            std::iter::once(0..9).collect::<Vec<_>>()
        );
    }

    #[test]
    fn of_new_texts_none_is_prepared_and_each_is_another_one() {
        let made = |share| {
            let data = data(Profile::Loop, 2);
            Tpcb::new(data, &statements::STATEMENTS, RoundTrips::Each, share).unwrap()
        };
        let new = |it: &Tpcb| it.statements(1).iter().filter(|it| it.is_new).count();
        let weights = |it: &Tpcb| it.kinds().iter().map(|it| it.weight).collect::<Vec<_>>();
        let (none, some, all) = (made(0.0), made(0.1), made(1.0));
        assert_eq!([none.statements(1).len(), new(&none)], [7, 0]);
        // All but BEGIN and END, which have no numbers.
        assert_eq!([some.statements(1).len(), new(&some)], [14, 5]);
        assert_eq!([all.statements(1).len(), new(&all)], [7, 5]);
        assert_eq!(weights(&some), [900_000, 100_000]);
        assert_eq!((weights(&none).len(), weights(&all).len()), (1, 1));
        assert_eq!(some.kinds()[1].trips[6], 13..14);
        let label = &some.statements(1)[7].pieces;
        assert_eq!(label[label.len() - 2], Piece::Number(ROW));
        let mut actor = some.actor(3);
        let mut row = || actor.begin(0, &mut SmallRng::seed_from_u64(1))[ROW];
        assert_ne!(row(), row());
    }

    #[test]
    fn each_set_of_files_has_statements_of_its_own() {
        let rw3 = Tpcb::new(data(Profile::Rw3, 16), &sql::MYSQL, RoundTrips::Each, 0.0).unwrap();
        assert_eq!(rw3.sets(), 16);
        for set in 0..16 {
            let texts = format!("{:?}", rw3.statements(set));
            assert!(texts.contains(&format!("concurve.accounts_{} ", set + 1)));
        }
    }

    #[test]
    fn what_was_read_is_written_back_with_the_delta() {
        let tpcb = Tpcb::new(data(Profile::Rw3, 1), &sql::SQLITE, RoundTrips::Each, 0.0).unwrap();
        let mut actor = tpcb.actor(0);
        let mut numbers = actor.begin(0, &mut SmallRng::seed_from_u64(1));
        numbers[DELTA] = -5;
        let ending = actor.heard(0, 1, &mut numbers, &Answer::Done(Some(7)));
        assert_eq!((ending, numbers[BALANCE]), (None, 2));
    }

    #[test]
    fn only_reading_does_without_data_of_its_own() {
        let like = data(Profile::Like, 1);
        assert!(like.serves(&like) && like.serves(&data(Profile::Read, 1)));
        assert!(!like.serves(&data(Profile::Strict, 1)));
        assert!(!like.serves(&data(Profile::Like, 2)));
    }
}
