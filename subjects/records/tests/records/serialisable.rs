//! Whether transactions are serialisable, by a checker of histories.

use std::sync::atomic::{AtomicU64, Ordering};

use concurve_records::{Durability, Engine, Status, TransactionKind};

use crate::common::history::{Client, Seen, cycle, make_file};
use crate::common::{LATCHINGS, options};

#[test]
fn the_checker_finds_anomalies() {
    let seen = |id, reads: &[(u64, u64)], writes: &[(u64, u64)]| Seen {
        id,
        reads: reads.to_vec(),
        writes: writes.to_vec(),
    };
    let in_order = [
        seen(1, &[], &[(7, 0), (8, 0)]),
        seen(2, &[(7, 1)], &[(8, 1)]),
    ];
    assert_eq!(cycle(&in_order), None);
    let skew = [
        seen(1, &[(7, 0), (8, 0)], &[(7, 0)]),
        seen(2, &[(7, 0), (8, 0)], &[(8, 0)]),
    ];
    assert_eq!(cycle(&skew), Some(vec![1, 2]));
    let lost = [seen(1, &[], &[(7, 0)]), seen(2, &[], &[(7, 0)])];
    assert_eq!(cycle(&lost), Some(vec![1, 2]));
    let half_seen = [
        seen(1, &[], &[(7, 0), (8, 0)]),
        seen(2, &[(7, 1), (8, 0)], &[]),
    ];
    assert_eq!(cycle(&half_seen), Some(vec![1, 2]));
}

fn engine(folder: &std::path::Path, latching: concurve_records::Latching) -> Engine {
    let options = options(latching, Durability::None);
    let (engine, _) = Engine::open(folder, options).unwrap();
    make_file(&engine);
    engine
}

#[test]
fn concurrent_random_transactions_have_a_serial_order() {
    for latching in LATCHINGS {
        for round in 0..40 {
            let folder = tempfile::tempdir().unwrap();
            let engine = engine(folder.path(), latching);
            let ids = AtomicU64::new(1);
            let mut history = Vec::new();
            std::thread::scope(|scope| {
                let threads: Vec<_> = (0..4)
                    .map(|number| {
                        let mut client = Client::new(&engine, 1 + round * 10 + number);
                        let ids = &ids;
                        scope.spawn(move || work(&mut client, ids))
                    })
                    .collect();
                for thread in threads {
                    history.extend(thread.join().unwrap());
                }
            });
            engine.verify().unwrap();
            let found = cycle(&history);
            assert_eq!(found, None, "{latching:?}, round {round}: {history:#?}");
        }
    }
}

fn work(client: &mut Client, ids: &AtomicU64) -> Vec<Seen> {
    let mut history = Vec::new();
    for _ in 0..12 {
        match client.transact(ids.fetch_add(1, Ordering::Relaxed)) {
            Ok(seen) => history.push(seen),
            Err(Status::Deadlock) => client.session.abort().unwrap(),
            Err(status) => panic!("{status}"),
        }
    }
    history
}

/// Reads outside of transactions are not repeatable, and the checker detects it.
#[test]
fn reads_outside_of_their_transaction_are_detected() {
    let folder = tempfile::tempdir().unwrap();
    let engine = engine(folder.path(), LATCHINGS[2]);
    let mut one = Client::new(&engine, 1);
    let mut other = Client::new(&engine, 2);
    let (mut first, mut second) = (Seen::default(), Seen::default());
    (first.id, second.id) = (1, 2);
    one.read(3, &mut first).unwrap();
    other.read(4, &mut second).unwrap();
    for (client, key, seen) in [(&mut one, 4, &mut first), (&mut other, 3, &mut second)] {
        client.session.begin(TransactionKind::Concurrent).unwrap();
        client.write(key, seen).unwrap();
        client.session.end().unwrap();
    }
    assert_eq!(cycle(&[first, second]), Some(vec![1, 2]));
}
