//! Many engines on one lock table, threads and processes: no two owners ever hold locks that
//! exclude each other, and every answer is consistent with the locks that its owner was granted
//! before.
//!
//! Each engine is an owner and records its own locks. After each grant and before each release, it
//! announces them to all others, by bits of the arguments concerned, and reads theirs. Two owners
//! whose locks exclude each other both write before they read, so one of them detects it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use concurve_engines::{Engine, Event, Mode as Engines, Plan, Service, Start, serve};
use concurve_server::lock_table::argument::overlap;
use concurve_server::lock_table::latched::{Latching, LockTable};
use concurve_server::lock_table::mode::{Mode, Rules, Scope};
use concurve_server::lock_table::request::{Counts, Refusal, Request, Subject};
use concurve_server::lock_table::usage::TableUsage;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

const OWNERS: u32 = 8;
const STEPS: usize = 100_000;
/// One in so many requests for several arguments is made in the second half of the steps: so most of the time none
/// is locked, and a request for one argument need not look for them.
const RARE: u32 = 50;
/// Fewer than the owners would like to hold.
const CAPACITY: u64 = 40;

/// The locks on an exact argument, as their owners announce them: a bit for each owner.
#[derive(Default)]
struct Announced {
    shared: AtomicU64,
    exclusive: AtomicU64,
}

const ALPHABET: [&str; 3] = ["a", "b", "@"];

/// All arguments of two positions, generic ones too.
fn arguments() -> Vec<String> {
    let pairs = ALPHABET
        .iter()
        .flat_map(|one| ALPHABET.map(|two| format!("{one}{two}")));
    pairs.collect()
}

struct Shared {
    table: LockTable,
    usage: Arc<TableUsage>,
    arguments: Vec<String>,
    /// For each of them a bit for each exact argument that it overlaps with.
    covers: Vec<u32>,
    announced: Vec<Announced>,
}

impl Shared {
    fn new(latching: Latching) -> Self {
        let usage = Arc::new(TableUsage::new(CAPACITY));
        let is_exact = |it: &String| !it.contains('@');
        let exact: Vec<String> = arguments().into_iter().filter(is_exact).collect();
        let cover = |argument: &String| {
            let overlaps = |(bit, exact): (usize, &String)| {
                u32::from(overlap(argument.as_bytes(), exact.as_bytes())) << bit
            };
            exact.iter().enumerate().map(overlaps).sum()
        };
        Self {
            table: LockTable::new(latching, Rules::default(), Arc::clone(&usage)),
            usage,
            arguments: arguments(),
            covers: arguments().iter().map(cover).collect(),
            announced: exact.iter().map(|_| Announced::default()).collect(),
        }
    }
}

/// The locks that an engine holds by its own records.
struct Owner<'a> {
    shared: &'a Shared,
    number: u32,
    draw: SmallRng,
    /// How often it holds each lock; an O may have been ended by a promotion of another owner.
    held: HashMap<(usize, Mode), u32>,
}

impl Owner<'_> {
    fn run(&mut self) {
        for step in 0..STEPS {
            let at = self.argument(step >= STEPS / 2);
            let mode = Mode::ALL[self.draw.random_range(0..Mode::ALL.len())];
            match self.draw.random_range(0..100) {
                0..40 => self.lock(at, mode),
                40..80 => self.unlock_something(),
                80..90 => self.promote(at),
                _ => self.release_all(),
            }
            assert!(self.shared.usage.locks().now() <= CAPACITY);
        }
        self.release_all();
    }

    /// The index of an argument; seldom of one that stands for several, if these are rare.
    fn argument(&mut self, are_rare: bool) -> usize {
        loop {
            let at = self.draw.random_range(0..self.shared.arguments.len());
            let is_exact = !self.shared.arguments[at].contains('@');
            if is_exact || !are_rare || self.draw.random_range(0..RARE) == 0 {
                return at;
            }
        }
    }

    fn request(&self, at: usize, mode: Mode) -> Request<'_> {
        Request {
            subject: Subject {
                table: b"T",
                argument: self.shared.arguments[at].as_bytes(),
            },
            mode,
            owner: self.number,
            scope: Scope::DIALOG,
            backup: false,
        }
    }

    fn lock(&mut self, at: usize, mode: Mode) {
        let before = self.held.get(&(at, mode)).copied().unwrap_or(0);
        if mode == Mode::Optimistic && before > 0 {
            return; // a promotion may have ended it
        }
        match self.shared.table.lock(&self.request(at, mode), &mut ()) {
            Ok(counts) => self.granted(at, mode, counts, before + 1),
            Err(Refusal::NotHeld) => panic!("a request for a lock requires no other lock"),
            Err(Refusal::Collision(_) | Refusal::Full) => {}
        }
    }

    fn granted(&mut self, at: usize, mode: Mode, counts: Counts, expected: u32) {
        assert_eq!((counts.dialog, counts.update), (expected, 0), "{mode:?}");
        self.held.insert((at, mode), expected);
        self.announce();
    }

    fn unlock_something(&mut self) {
        let Some(&(at, mode)) = self.held.keys().next() else {
            return;
        };
        let left = self.held[&(at, mode)] - 1;
        if left == 0 {
            self.held.remove(&(at, mode));
        } else {
            self.held.insert((at, mode), left);
        }
        self.announce();
        match self.shared.table.unlock(&self.request(at, mode), &mut ()) {
            Ok(counts) => assert_eq!(counts.dialog, left),
            Err(Refusal::NotHeld) => assert_eq!(mode, Mode::Optimistic, "it was granted"),
            Err(refusal) => panic!("{refusal:?} to an unlock"),
        }
    }

    fn promote(&mut self, at: usize) {
        let optimistic = self.held.contains_key(&(at, Mode::Optimistic));
        match self
            .shared
            .table
            .promote(&self.request(at, Mode::Exclusive), &mut ())
        {
            Ok((counts, _)) => {
                assert!(optimistic, "promoted a lock that was never granted");
                self.held.remove(&(at, Mode::Optimistic));
                let before = self.held.get(&(at, Mode::Exclusive)).copied();
                self.granted(at, Mode::Exclusive, counts, before.unwrap_or(0) + 1);
            }
            Err(Refusal::NotHeld) => {
                self.held.remove(&(at, Mode::Optimistic));
            }
            Err(Refusal::Collision(_)) => assert!(optimistic),
            Err(Refusal::Full) => panic!("a promotion needs no capacity"),
        }
    }

    fn release_all(&mut self) {
        let sure = self.held.keys().filter(|it| it.1 != Mode::Optimistic);
        let (sure, at_most) = (sure.count() as u64, self.held.len() as u64);
        self.held.clear();
        self.announce();
        let table = &self.shared.table;
        let freed = table.release_all(self.number, Scope::BOTH, &mut ());
        assert!(
            (sure..=at_most).contains(&freed),
            "{sure} {freed} {at_most}"
        );
        assert!(!table.holds(self.number));
    }

    /// Announces what it holds, then checks that no other owner announces what excludes that.
    fn announce(&self) {
        let (mut shared, mut exclusive) = (0, 0);
        for (at, mode) in self.held.keys() {
            match mode {
                Mode::Shared => shared |= self.shared.covers[*at],
                Mode::Exclusive | Mode::Sole => exclusive |= self.shared.covers[*at],
                Mode::Optimistic => {}
            }
        }
        let own = 1 << self.number;
        for (exact, announced) in self.shared.announced.iter().enumerate() {
            let (shared, exclusive) = (shared >> exact & 1 == 1, exclusive >> exact & 1 == 1);
            for (bits, is_held) in [
                (&announced.shared, shared),
                (&announced.exclusive, exclusive),
            ] {
                if (bits.load(SeqCst) & own != 0) != is_held {
                    bits.fetch_xor(own, SeqCst);
                }
            }
            let others = |bits: &AtomicU64| bits.load(SeqCst) & !own;
            if shared || exclusive {
                assert_eq!(others(&announced.exclusive), 0, "{exact} is held twice");
            }
            if exclusive {
                assert_eq!(others(&announced.shared), 0, "{exact} is read and written");
            }
        }
    }
}

/// One latching, tried by engines that are owners.
struct Stress(Latching);

impl Service for Stress {
    type Shared = Shared;

    fn open(&self, start: Start) -> Result<Shared, String> {
        // An engine that has failed an assertion late is followed by others, which may succeed.
        if start.generation > 1 {
            return Err("an engine died, as said above".to_owned());
        }
        Ok(Shared::new(self.0))
    }

    fn run(&self, shared: &Shared, engine: &Engine) -> Result<(), String> {
        shared.try_as(engine.number - 1);
        Ok(())
    }

    fn close(&self, shared: Shared) -> Result<(), String> {
        shared.must_be_empty();
        Ok(())
    }

    fn on_event(&self, _: &Event) {}
}

impl Shared {
    fn try_as(&self, number: u32) {
        let mut owner = Owner {
            shared: self,
            number,
            draw: SmallRng::seed_from_u64(number.into()),
            held: HashMap::new(),
        };
        owner.run();
    }

    fn must_be_empty(&self) {
        assert_eq!(self.usage.locks().now(), 0);
        assert_eq!(self.usage.arguments().now(), 0);
        assert!(self.usage.locks().peak() <= CAPACITY);
        let mut left = 0;
        self.table.each(&mut |_| left += 1);
        assert_eq!(left, 0);
    }
}

const LATCHINGS: [Latching; 2] = [Latching::Global, Latching::Record];

pub fn no_two_owners_hold_locks_that_exclude_each_other() {
    // Before threads: a process that forks must have one thread, and a thread that was joined may
    // exist a little longer.
    for latching in LATCHINGS {
        serve(&processes(), &Stress(latching))
            .unwrap_or_else(|why| panic!("processes, {latching:?}: {why}"));
    }
    LATCHINGS.into_iter().for_each(try_threads);
}

fn processes() -> Plan {
    Plan {
        mode: Engines::Processes,
        engines: OWNERS,
        memory_bytes: 256 << 20,
        memory_remedy: "raise memory_bytes in the test",
        quick_deaths_max: 1,
        stop_within: Duration::from_secs(120),
    }
}

fn try_threads(latching: Latching) {
    let shared = Shared::new(latching);
    std::thread::scope(|scope| {
        for number in 0..OWNERS {
            let shared = &shared;
            scope.spawn(move || shared.try_as(number));
        }
    });
    shared.must_be_empty();
}
