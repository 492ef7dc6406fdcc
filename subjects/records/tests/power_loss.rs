//! Loss of power, and disks that are full, at many moments: after the next start everything that
//! was acknowledged is there, and nothing else is there half.

mod common;
#[path = "common/power.rs"]
mod power;
#[path = "common/until_the_end.rs"]
mod until_the_end;

use std::sync::Arc;

use common::{LATCHINGS, Teller, audit, make_bank, options};
use concurve_records::storage::Storage;
use concurve_records::{Durability, Engine, Latching, Status, TransactionKind};
use power::{End, Simulated};
use until_the_end::{Acknowledged, check, random, small, work_until_the_end};

/// Clients work until the storage ends; returns what they were told, with their next numbers.
fn all_work_until_the_end(engine: &Engine, from: &Acknowledged, expected: Status) -> Acknowledged {
    let mut told = from.clone();
    std::thread::scope(|scope| {
        let start = |client| {
            let next = from.get(&client).copied().unwrap_or(0);
            scope.spawn(move || (client, work_until_the_end(engine, client, next, expected)))
        };
        let threads: Vec<_> = (0..3).map(start).collect();
        told.extend(threads.into_iter().map(|it| it.join().unwrap()));
    });
    told
}

/// Whether the clients got enough done for the checks to mean something.
fn done(told: &Acknowledged) -> bool {
    told.values().sum::<u32>() > 50
}

/// They are there whole or not at all. Names come again.
fn make_and_drop_files(engine: &Engine, round: u64) {
    let name = |number: u64| format!("extra-{}", number % 3);
    let mut session = engine.session();
    if engine
        .create_file(&name(round), &common::balance_file())
        .is_ok()
    {
        let opened = session.open(&name(round));
        let _ = opened.and_then(|file| session.insert(file, &[1; 100]));
    }
    let _ = session.drop_file(&name(round + 1));
}

#[test]
fn after_a_loss_of_power_all_that_was_acknowledged_is_there() {
    for (at, latching) in LATCHINGS.into_iter().enumerate() {
        for durability in [Durability::Group, Durability::Each, Durability::None] {
            let options = small(latching, durability);
            let mut storage = Simulated::new();
            let (engine, _) = Engine::open_in(Arc::new(storage.share()), options.clone()).unwrap();
            make_bank(&engine);
            engine.close().unwrap();
            let mut told = Acknowledged::new();
            // More rounds where the engine's own writes leave the clients little.
            for round in 0..150_u64 {
                if round >= 15 && done(&told) {
                    break;
                }
                let seed = round + 100 * at as u64 + 1000 * durability as u64;
                let case = format!("{latching:?}, {durability:?}, round {round}");
                let mut random = random(seed);
                let end = u64::from(random(400));
                storage.end_after(end, End::PowerLoss);
                let opened = Engine::open_in(Arc::new(storage.share()), options.clone());
                // It may end while the engine starts.
                if let Ok((engine, _)) = opened {
                    make_and_drop_files(&engine, round);
                    told = all_work_until_the_end(&engine, &told, Status::Io);
                }
                storage = storage.after_power_loss(&mut random);
                let opened = Engine::open_in(Arc::new(storage.share()), options.clone());
                let (engine, _) = opened.unwrap_or_else(|fault| panic!("{case}: {fault}"));
                let is_durable = durability != Durability::None;
                told = check(&engine, &told, is_durable, &case);
                engine.close().unwrap();
            }
            assert!(done(&told), "they got something done");
        }
    }
}

#[test]
fn a_full_disk_is_an_error_and_no_damage() {
    let options = small(Latching::Record, Durability::Group);
    let storage = Simulated::new();
    let (engine, _) = Engine::open_in(Arc::new(storage.share()), options.clone()).unwrap();
    make_bank(&engine);
    engine.close().unwrap();
    let mut told = Acknowledged::new();
    for round in 0..20 {
        storage.end_after(u64::MAX, End::Full);
        let (engine, _) = Engine::open_in(Arc::new(storage.share()), options.clone()).unwrap();
        let mut random = random(round);
        storage.end_after(20 + u64::from(random(200)), End::Full);
        told = all_work_until_the_end(&engine, &told, Status::DiskFull);
        assert!(engine.failure().is_some());
        drop(engine);
        storage.end_after(u64::MAX, End::Full);
        let (engine, _) = Engine::open_in(Arc::new(storage.share()), options.clone()).unwrap();
        told = check(&engine, &told, true, &format!("round {round}"));
    }
}

#[test]
fn damage_is_told_by_its_place() {
    let options = options(Latching::Record, Durability::Group);
    let storage = Simulated::new();
    let (engine, _) = Engine::open_in(Arc::new(storage.share()), options.clone()).unwrap();
    make_bank(&engine);
    engine.close().unwrap();
    let refused = |storage: &Simulated| {
        let opened = Engine::open_in(Arc::new(storage.share()), options.clone());
        opened.map(|_| ()).unwrap_err().to_string()
    };
    // No copy to mend pages with.
    for at in (100..storage.length("pages.double")).step_by(8192) {
        storage.damage("pages.double", at);
    }
    let at = storage.length("data-accounts") - 100;
    storage.damage("data-accounts", at);
    let text = refused(&storage);
    assert!(text.contains("of file 0 is damaged on the disk"), "{text}");
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
    assert!(text.contains("control file is damaged"), "{text}");
}

#[test]
fn a_log_that_was_durable_and_is_not_whole_is_refused() {
    let options = options(Latching::Record, Durability::Group);
    let storage = Simulated::new();
    let (engine, _) = Engine::open_in(Arc::new(storage.share()), options.clone()).unwrap();
    make_bank(&engine);
    engine.close().unwrap();
    // A transaction that is open during a checkpoint keeps the log before it.
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
    assert!(text.contains("damaged or cut off at byte"), "{text}");
    storage.damage(log, 30);
    let (engine, recovered) = Engine::open_in(Arc::new(storage.share()), options).unwrap();
    assert_eq!(recovered.undone, 1);
    assert_eq!(audit(&engine), []);
}
