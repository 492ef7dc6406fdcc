//! Concurrent clients that transfer money: no sum changes, and no acknowledged transaction is lost.

use concurve_records::{Durability, Engine};

use crate::common::{LATCHINGS, Teller, audit, make_bank, options};

fn trade(engine: &Engine, clients: u32, transactions: u32, first: u32) {
    std::thread::scope(|scope| {
        for client in 0..clients {
            let mut teller = Teller::new(engine, client).unwrap();
            teller.next = first;
            scope.spawn(move || {
                for _ in 0..transactions {
                    teller.transact().unwrap();
                }
            });
        }
    });
}

#[test]
fn concurrent_clients_keep_the_sums_with_all_options_and_over_restarts() {
    for latching in LATCHINGS {
        for durability in [Durability::None, Durability::Group, Durability::Each] {
            let folder = tempfile::tempdir().unwrap();
            let options = options(latching, durability);
            let transactions = if durability == Durability::None {
                500
            } else {
                25
            };
            {
                let (engine, _) = Engine::open(folder.path(), options.clone()).unwrap();
                make_bank(&engine);
                trade(&engine, 6, transactions, 0);
                assert_eq!(engine.locks(), 0);
                audit(&engine);
                // Not closed: the next start recovers.
            }
            // Of no record, if a checkpoint began after the last transaction.
            let (engine, _) = Engine::open(folder.path(), options.clone()).unwrap();
            trade(&engine, 3, transactions, transactions);
            engine.close().unwrap();
            let (engine, recovered) = Engine::open(folder.path(), options).unwrap();
            assert_eq!(recovered.records, 0);
            let done = audit(&engine);
            assert_eq!(done.len(), 6);
            for (client, numbers) in done {
                let rounds = if client < 3 { 2 } else { 1 };
                let expected: Vec<u32> = (0..rounds * transactions).collect();
                assert_eq!(numbers, expected, "of client {client}");
            }
        }
    }
}

/// More sessions than CPUs, and fewer branches than sessions: no session waits for ever, with any
/// latching.
#[test]
fn many_sessions_finish() {
    for latching in LATCHINGS {
        let folder = tempfile::tempdir().unwrap();
        let (engine, _) = Engine::open(folder.path(), options(latching, Durability::None)).unwrap();
        make_bank(&engine);
        trade(&engine, 96, 20, 0);
        let done = audit(&engine);
        assert_eq!(done.iter().map(|it| it.1.len()).sum::<usize>(), 96 * 20);
        assert_eq!((engine.locks(), engine.waiting()), (0, 0));
    }
}
