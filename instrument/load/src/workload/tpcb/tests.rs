//! The profiles in each dialect.

use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::parameters::{BALANCE, DELTA, PLACEHOLDERS, ROW};
use super::profile::{ACCOUNTS, BankData, Profile};
use super::workload::{RoundTrips, Tpcb};
use super::{sql, statements};
use crate::workload::{Answer, Piece, Statement, Workload};

fn data(profile: Profile, files: u32) -> BankData {
    BankData {
        profile,
        scale: 2,
        accounts: ACCOUNTS,
        files,
    }
}

fn statement(text: &str) -> Statement {
    let placeholders = PLACEHOLDERS.map(|(name, slot)| (name, vec![Piece::Parameter(slot)]));
    Statement::parse(text, &placeholders).unwrap()
}

#[test]
fn tpcb_like_is_what_pgbench_does() {
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
    assert_eq!(like.kinds()[0].round_trips.len(), 7);
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
        rw3.kinds()[0].round_trips,
        std::iter::once(0..9).collect::<Vec<_>>()
    );
}

#[test]
fn new_texts_are_not_prepared_and_all_differ() {
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
    assert_eq!(some.kinds()[1].round_trips[6], 13..14);
    let label = &some.statements(1)[7].pieces;
    assert_eq!(label[label.len() - 2], Piece::Parameter(ROW));
    let mut generator = some.generator(3);
    let mut row = || generator.begin(0, &mut SmallRng::seed_from_u64(1))[ROW];
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
fn the_balance_that_was_read_is_written_back_with_the_delta() {
    let tpcb = Tpcb::new(data(Profile::Rw3, 1), &sql::SQLITE, RoundTrips::Each, 0.0).unwrap();
    let mut generator = tpcb.generator(0);
    let mut parameters = generator.begin(0, &mut SmallRng::seed_from_u64(1));
    parameters[DELTA] = -5;
    let ending = generator.answered(0, 1, &mut parameters, &Answer::Done(Some(7)));
    assert_eq!((ending, parameters[BALANCE]), (None, 2));
}

#[test]
fn a_reading_workload_can_use_the_data_of_another_one() {
    let like = data(Profile::Like, 1);
    assert!(like.serves(&like) && like.serves(&data(Profile::Read, 1)));
    assert!(!like.serves(&data(Profile::Strict, 1)));
    assert!(!like.serves(&data(Profile::Like, 2)));
}
