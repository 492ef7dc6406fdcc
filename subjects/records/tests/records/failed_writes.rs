//! One call of the disk fails, and before the engine has stopped more is written: by another thread, or by whoever
//! closes it. Then that ends, too. The next start mends what the failed write has left half done.

use std::sync::Arc;

use concurve_fuzz::Draw;
use concurve_records::{Durability, Engine, EngineOptions, FileDefinition, Latching, Session};

use crate::simulated::{End, Failure, Simulated};

/// Two on a page.
const RECORD_BYTES: u16 = 4000;
const FILES: [&str; 2] = ["one", "other"];
/// More than are written together.
const PAGES: usize = 96;

/// What writes the pages when the call fails.
#[derive(Debug, Clone, Copy)]
enum Work {
    /// A session that needs a page of the cache.
    Insert,
    Checkpoint,
}

fn options() -> EngineOptions {
    EngineOptions {
        latching: Latching::Record,
        durability: Durability::None,
        cache_pages: PAGES,
        // No checkpoint is due, and few files of the log.
        checkpoint_bytes: 1 << 22,
        checkpoint_stretch: 1,
    }
}

/// Inserts records, those of a page into one file and those of the next page into the other one, so that pages
/// follow each other otherwise in the cache than in the files. False if that has failed.
fn insert(session: &mut Session, numbers: std::ops::Range<usize>) -> bool {
    let files = FILES.map(|it| session.open(it));
    numbers.into_iter().all(|number| {
        let record = vec![number as u8; usize::from(RECORD_BYTES)];
        files[number / 2 % 2].is_ok_and(|file| session.insert(file, &record).is_ok())
    })
}

/// Lets a call of some work fail, writes more, and starts again after a kill or a loss of power. False if no call has
/// failed.
fn fail_and_go_on(work: Work, calls: u64, mut draw: Draw) -> bool {
    let storage = Simulated::seeded(draw.number());
    let (engine, _) = Engine::open_shared_in(Arc::new(storage.share()), options()).unwrap();
    for name in FILES {
        let (record_bytes, keys) = (RECORD_BYTES, Vec::new());
        let definition = FileDefinition { record_bytes, keys };
        engine.create_file(name, &definition).unwrap();
    }
    let mut session = engine.session();
    assert!(insert(&mut session, 0..2 * PAGES), "they are in the cache");
    let failure = *draw.pick(&[Failure::Io, Failure::Full]);
    storage.fail_after(calls, failure);
    match work {
        Work::Insert => drop(insert(&mut session, 0..8)),
        Work::Checkpoint => drop(engine.checkpoint()),
    }
    let has_failed = storage.has_failed();
    let writes = draw.below(8) as u64;
    storage.end_after(writes, End::PowerLoss);
    let _ = engine.checkpoint();
    let is_killed = draw.once_in(2);
    let next = match is_killed {
        true => storage.after_kill(),
        false => storage.after_power_loss(),
    };
    let opened = Engine::open_shared_in(Arc::new(next), options());
    let verified = opened.and_then(|(engine, _)| engine.verify());
    verified.unwrap_or_else(|fault| {
        panic!(
            "call {calls} of {work:?} fails with {failure:?}, {writes} writes follow, killed: {is_killed}: {fault}"
        )
    });
    has_failed
}

#[test]
fn what_a_failed_write_leaves_is_mended_whatever_is_written_afterwards() {
    const TRIES: u64 = 4;
    for work in [Work::Insert, Work::Checkpoint] {
        let try_some = |calls: &u64| {
            let tried =
                (0..TRIES).map(|it| fail_and_go_on(work, *calls, Draw::new(100 * calls + it)));
            // All of them, and not all have the same calls.
            tried.filter(|has_failed| *has_failed).count() > 0
        };
        let calls = (0..).take_while(try_some).count();
        assert!(calls > 6, "only {calls} calls of {work:?}");
    }
}

/// Two writes fail, one after the other: not both places of the file `control` may be half written.
#[test]
fn one_place_of_the_control_file_stays_whole() {
    let mut options = options();
    options.checkpoint_bytes = 1 << 18;
    let mut failed = 0;
    for seed in 0..400 {
        let mut draw = Draw::new(seed);
        let storage = Simulated::seeded(draw.number());
        let (engine, _) =
            Engine::open_shared_in(Arc::new(storage.share()), options.clone()).unwrap();
        // Neither has a page to write: the calls of a checkpoint are few.
        let (calls, writes) = (draw.below(12) as u64, draw.below(6) as u64);
        storage.fail_after(calls, Failure::Io);
        failed += u32::from(engine.checkpoint().is_err());
        storage.end_after(writes, End::PowerLoss);
        let _ = engine.checkpoint();
        let next = Arc::new(storage.after_kill());
        let opened = Engine::open_shared_in(next, options.clone());
        let opened = opened.map(drop);
        opened.unwrap_or_else(|fault| panic!("call {calls} fails, {writes} follow: {fault}"));
    }
    assert!(failed > 40, "{failed} checkpoints failed");
}
