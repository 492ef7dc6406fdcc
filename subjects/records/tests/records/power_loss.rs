//! Power losses and full disks after many different numbers of writes: at the next start every
//! acknowledged transaction is there, and no other one is there in part.

use std::sync::Arc;

use concurve_fuzz::Draw;
use concurve_records::storage::Storage;
use concurve_records::{Durability, Engine, Latching, Status, TransactionKind};

use crate::common::{LATCHINGS, Teller, audit, balance_file, make_bank, options};
use crate::crash_clients::{Acknowledged, check, small, work_until_failure};
use crate::simulated::{End, Simulated};

/// Clients work until the storage fails; returns their numbers of acknowledged transactions.
fn all_work_until_failure(engine: &Engine, from: &Acknowledged, expected: Status) -> Acknowledged {
    let mut acknowledged = from.clone();
    std::thread::scope(|scope| {
        let start = |client| {
            let next = from.get(&client).copied().unwrap_or(0);
            scope.spawn(move || (client, work_until_failure(engine, client, next, expected)))
        };
        let threads: Vec<_> = (0..3).map(start).collect();
        acknowledged.extend(threads.into_iter().map(|it| it.join().unwrap()));
    });
    acknowledged
}

/// Whether the clients did enough for the checks to be meaningful.
fn done(acknowledged: &Acknowledged) -> bool {
    acknowledged.values().sum::<u32>() > 50
}

/// Files exist completely or not at all. Names are reused.
fn make_and_drop_files(engine: &Engine, round: u64) {
    let name = |number: u64| format!("extra-{}", number % 3);
    let mut session = engine.session();
    if engine.create_file(&name(round), &balance_file()).is_ok() {
        let opened = session.open(&name(round));
        let _ = opened.and_then(|file| session.insert(file, &[1; 100]));
    }
    let _ = session.drop_file(&name(round + 1));
}

#[test]
fn no_acknowledged_transaction_is_lost_after_a_power_loss() {
    for (at, latching) in LATCHINGS.into_iter().enumerate() {
        for durability in [Durability::Group, Durability::Each, Durability::None] {
            let options = small(latching, durability);
            let mut storage = Simulated::seeded(at as u64 + 1000 * durability as u64);
            let (engine, _) = Engine::open_in(Arc::new(storage.share()), options.clone()).unwrap();
            make_bank(&engine);
            engine.close().unwrap();
            let mut acknowledged = Acknowledged::new();
            // More rounds if the engine's own writes leave few to the clients.
            for round in 0..150_u64 {
                if round >= 15 && done(&acknowledged) {
                    break;
                }
                let seed = round + 100 * at as u64 + 1000 * durability as u64;
                let case = format!("{latching:?}, {durability:?}, round {round}");
                let end = Draw::new(seed).below(400) as u64;
                storage.end_after(end, End::PowerLoss);
                let opened = Engine::open_in(Arc::new(storage.share()), options.clone());
                // The storage may fail while the engine starts.
                if let Ok((engine, _)) = opened {
                    make_and_drop_files(&engine, round);
                    acknowledged = all_work_until_failure(&engine, &acknowledged, Status::Io);
                }
                storage = storage.after_power_loss();
                let opened = Engine::open_in(Arc::new(storage.share()), options.clone());
                let (engine, _) = opened.unwrap_or_else(|fault| panic!("{case}: {fault}"));
                let is_durable = durability != Durability::None;
                acknowledged = check(&engine, &acknowledged, is_durable, &case);
                engine.close().unwrap();
            }
            assert!(done(&acknowledged), "the clients did something");
        }
    }
}

#[test]
fn a_full_disk_is_an_error_without_damage() {
    let options = small(Latching::Record, Durability::Group);
    let storage = Simulated::new();
    let (engine, _) = Engine::open_in(Arc::new(storage.share()), options.clone()).unwrap();
    make_bank(&engine);
    engine.close().unwrap();
    let mut acknowledged = Acknowledged::new();
    for round in 0..20 {
        storage.end_after(u64::MAX, End::Full);
        let (engine, _) = Engine::open_in(Arc::new(storage.share()), options.clone()).unwrap();
        let end = 20 + Draw::new(round).below(200) as u64;
        storage.end_after(end, End::Full);
        acknowledged = all_work_until_failure(&engine, &acknowledged, Status::DiskFull);
        assert!(engine.failure().is_some());
        drop(engine);
        storage.end_after(u64::MAX, End::Full);
        let (engine, _) = Engine::open_in(Arc::new(storage.share()), options.clone()).unwrap();
        acknowledged = check(&engine, &acknowledged, true, &format!("round {round}"));
    }
}

#[test]
fn damage_is_reported_with_its_place() {
    let options = options(Latching::Record, Durability::Group);
    let storage = Simulated::new();
    let (engine, _) = Engine::open_in(Arc::new(storage.share()), options.clone()).unwrap();
    make_bank(&engine);
    engine.close().unwrap();
    let refused = |storage: &Simulated| {
        let opened = Engine::open_in(Arc::new(storage.share()), options.clone());
        opened.map(|_| ()).unwrap_err().to_string()
    };
    // No copy to restore pages from.
    for at in (100..storage.length("pages.double")).step_by(8192) {
        storage.damage("pages.double", at);
    }
    let at = storage.length("data-accounts") - 100;
    storage.damage("data-accounts", at);
    let text = refused(&storage);
    let place = format!(
        "page {} of the file data-accounts, from byte {}",
        at / 8192,
        at / 8192 * 8192
    );
    assert!(text.contains(&place), "{text}");
    storage.damage("data-accounts", at);
    storage.damage("data-tellers", 40);
    let text = refused(&storage);
    assert!(
        text.contains("first page of the file data-tellers"),
        "{text}"
    );
    storage.damage("data-tellers", 40);
    // Both places of the control file.
    storage.damage("control", 20);
    storage.damage("control", 532);
    let text = refused(&storage);
    assert!(
        text.contains("the file control is damaged at byte 0"),
        "{text}"
    );
}

#[test]
fn a_log_with_a_damaged_durable_part_is_refused() {
    let options = options(Latching::Record, Durability::Group);
    let storage = Simulated::new();
    let (engine, _) = Engine::open_in(Arc::new(storage.share()), options.clone()).unwrap();
    make_bank(&engine);
    engine.close().unwrap();
    // A transaction that runs during a checkpoint keeps the log before it.
    let (engine, _) = Engine::open_in(Arc::new(storage.share()), options.clone()).unwrap();
    let mut open = Teller::new(&engine, 0).unwrap();
    open.session.begin(TransactionKind::Concurrent).unwrap();
    let extra = open.session.open("history").unwrap();
    open.session.insert(extra, &[1; 50]).unwrap();
    engine.checkpoint().unwrap();
    std::mem::forget(open);
    drop(engine);
    let names = storage.names().unwrap();
    let log = names.iter().rfind(|it| it.starts_with("log-")).unwrap();
    storage.damage(log, 30);
    let opened = Engine::open_in(Arc::new(storage.share()), options.clone());
    let text = opened.map(|_| ()).unwrap_err().to_string();
    let place = format!("damaged or cut at byte 25 of the file {log}");
    assert!(text.contains(&place), "{text}");
    storage.damage(log, 30);
    let (engine, recovered) = Engine::open_in(Arc::new(storage.share()), options).unwrap();
    assert_eq!(recovered.undone, 1);
    assert_eq!(audit(&engine), []);
}
