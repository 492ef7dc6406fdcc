//! The engine in a deterministic simulation: a million operations and more, with failures at every call of
//! the storage, judged by a model after each start.
//!
//! A failure names its seed. `CONCURVE_SIMULATION_SEED=17 cargo test --profile checked -p
//! concurve-records --test records simulation:: -- --nocapture` runs that one again, and prints each step.

mod world;

use std::panic::catch_unwind;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use concurve_fuzz::Draw;
use concurve_records::Durability;

use crate::simulated::Failure;
use world::{Death, Fate, World, run, run_on_a_lying_disk};

/// Worlds that every run of the tests has.
const WORLDS: u64 = 12;
const MILLION: u64 = 1_000_000;
const SEED: &str = "CONCURVE_SIMULATION_SEED";
const SECONDS: &str = "CONCURVE_FUZZ_SECONDS";

/// What some worlds did.
#[derive(Default)]
struct Counts {
    worlds: AtomicU64,
    operations: AtomicU64,
    starts: AtomicU64,
    refusals: AtomicU64,
}

impl Counts {
    fn add(&self, world: &World) {
        self.worlds.fetch_add(1, Relaxed);
        self.operations.fetch_add(world.operations, Relaxed);
        self.starts.fetch_add(world.starts, Relaxed);
        self.refusals.fetch_add(world.refusals, Relaxed);
    }

    fn show(&self) {
        println!(
            "{} worlds: {} operations, {} starts, {} refused after a damage",
            self.worlds.load(Relaxed),
            self.operations.load(Relaxed),
            self.starts.load(Relaxed),
            self.refusals.load(Relaxed)
        );
    }
}

fn run_one(seed: u64, counts: &Counts, is_traced: bool) {
    let world = catch_unwind(|| run(seed, is_traced));
    match world {
        Ok(world) => counts.add(&world),
        // Of a panic in the engine, which does not know it.
        Err(_) => panic!("the world with seed {seed} fails, as said above; again: {SEED}={seed}"),
    }
}

#[test]
fn nothing_that_was_acknowledged_is_lost_in_some_worlds() {
    let counts = Counts::default();
    match std::env::var(SEED) {
        Ok(seed) => run_one(seed.parse().expect("a number"), &counts, true),
        Err(_) => (0..WORLDS).for_each(|seed| run_one(seed, &counts, false)),
    }
    counts.show();
}

/// So long as `CONCURVE_FUZZ_SECONDS` says, and a million operations at least, on all CPUs.
#[test]
#[ignore = "a minute or more: make soak"]
fn nothing_that_was_acknowledged_is_lost_in_a_million_operations() {
    let seconds = std::env::var(SECONDS).map_or(0, |it| it.parse().expect("a number"));
    let least = Duration::from_secs(seconds);
    let first = Draw::fresh_seed();
    eprintln!("worlds from seed {first} on");
    let (next, counts, begin) = (AtomicU64::new(first), Counts::default(), Instant::now());
    let is_over = || counts.operations.load(Relaxed) >= MILLION && begin.elapsed() >= least;
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cpus {
            scope.spawn(|| {
                while !is_over() {
                    run_one(next.fetch_add(1, Relaxed), &counts, false);
                }
            });
        }
    });
    counts.show();
    println!("in {:.1} s", begin.elapsed().as_secs_f64());
}

#[test]
fn a_world_is_the_same_for_the_same_seed() {
    for seed in [3, 4] {
        let (one, other) = (run(seed, false), run(seed, false));
        assert_eq!(one.fingerprint, other.fingerprint, "seed {seed}");
        assert_eq!(one.operations, other.operations);
    }
    assert_ne!(run(3, false).fingerprint, run(4, false).fingerprint);
}

/// The judge itself: it must notice that what was acknowledged is lost.
#[test]
fn a_disk_that_forces_nothing_is_found_out() {
    let is_noticed = |seed: u64| catch_unwind(|| run_on_a_lying_disk(seed)).is_err();
    assert!((0..3).all(is_noticed));
}

/// A fate after so many calls, and the death that follows.
type Way = (fn(u64) -> Fate, Death);

/// Each call of a start after a kill, and of some operations, fails once in each way.
#[test]
fn every_call_may_fail() {
    const OPERATIONS: usize = 25;
    for durability in [Durability::Group, Durability::None] {
        let world = World::furnished(durability);
        let fates: [Way; 5] = [
            (Fate::StopsAfter, Death::Kill),
            (Fate::StopsAfter, Death::PowerLoss),
            (Fate::FullAfter, Death::Kill),
            (|calls| Fate::Fails(calls, Failure::Io), Death::Kill),
            (|calls| Fate::Fails(calls, Failure::Io), Death::PowerLoss),
        ];
        for (fate, death) in fates {
            let tried = (0..).take_while(|calls| world.try_fate(fate(*calls), OPERATIONS, death));
            let tried = tried.count();
            assert!(
                tried > 20,
                "{durability:?}: only {tried} calls until {:?}",
                fate(0)
            );
        }
    }
}
