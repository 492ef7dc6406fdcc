//! Runs the cases of a target, and says which one failed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use concurve_clock::thread_cpu_ns;

use crate::draw::Draw;
use crate::memory::Counting;
use crate::mutate;

/// A case that uses more CPU time hangs.
const CPU_NS_MAX: u64 = 5_000_000_000;
/// A case that takes longer will not end, on however busy a machine: the process is aborted.
const ENDLESS: Duration = Duration::from_secs(120);
const SECONDS: &str = "CONCURVE_FUZZ_SECONDS";
const SEED: &str = "CONCURVE_FUZZ_SEED";

/// A parser under test, and what its inputs look like.
#[derive(Debug, Clone)]
pub struct Target<'a> {
    package: &'a str,
    name: &'a str,
    corpus: &'a [Vec<u8>],
    words: &'a [&'a [u8]],
    bytes_max: usize,
    memory_max: u64,
    cases: u64,
    known: &'a [u64],
}

impl<'a> Target<'a> {
    /// `package` is the crate and `name` the test, for the command that runs a case again; `corpus` are
    /// valid inputs.
    pub fn new(package: &'a str, name: &'a str, corpus: &'a [Vec<u8>]) -> Self {
        Self {
            package,
            name,
            corpus,
            words: &[],
            bytes_max: 4096,
            memory_max: 1 << 20,
            cases: 2000,
            known: &[],
        }
    }

    /// Words of the format, which are inserted.
    pub fn words(self, words: &'a [&'a [u8]]) -> Self {
        Self { words, ..self }
    }

    /// The longest input.
    pub fn bytes_max(self, bytes_max: usize) -> Self {
        Self { bytes_max, ..self }
    }

    /// The memory that a case may allocate at one time. Checked in programs whose allocator is
    /// [`Counting`].
    pub fn memory_max(self, memory_max: u64) -> Self {
        Self { memory_max, ..self }
    }

    /// How many cases run where the environment does not say otherwise.
    pub fn cases(self, cases: u64) -> Self {
        Self { cases, ..self }
    }

    /// Seeds of cases that failed once: they run first, each time.
    pub fn known(self, known: &'a [u64]) -> Self {
        Self { known, ..self }
    }

    /// Runs the cases; the draw goes on where that of the input has ended.
    ///
    /// # Panics
    /// If a case fails: with its seed, its input and its cause.
    pub fn run(&self, check: impl Fn(&[u8], &mut Draw)) {
        let watch = Watch::start(self.command());
        if let Some(seed) = variable(SEED) {
            return self.case(seed, &watch, &check);
        }
        for seed in self.known {
            self.case(*seed, &watch, &check);
        }
        let Some(seconds) = variable(SECONDS) else {
            return (0..self.cases).for_each(|seed| self.case(seed, &watch, &check));
        };
        let (begin, first) = (Instant::now(), Draw::fresh_seed());
        eprintln!(
            "fuzzing {} {} from seed {first} on",
            self.package, self.name
        );
        for seed in first.. {
            self.case(seed, &watch, &check);
            if begin.elapsed() >= Duration::from_secs(seconds) {
                let cases = seed - first + 1;
                eprintln!("fuzzed {} {}: {cases} cases", self.package, self.name);
                return;
            }
        }
    }

    fn case(&self, seed: u64, watch: &Watch, check: &impl Fn(&[u8], &mut Draw)) {
        let mut draw = Draw::new(seed);
        let input = mutate::input(&mut draw, self.corpus, self.words, self.bytes_max);
        watch.begin(seed);
        let begin_ns = thread_cpu_ns();
        Counting::begin();
        let checked = catch_unwind(AssertUnwindSafe(|| check(&input, &mut draw)));
        let (memory, cpu_ns) = (Counting::most(), thread_cpu_ns() - begin_ns);
        let why = match checked {
            Err(_) => "panics, as said above".to_owned(),
            Ok(()) if cpu_ns > CPU_NS_MAX => format!("takes {} ms of CPU time", cpu_ns / 1_000_000),
            Ok(()) if memory > self.memory_max => format!(
                "allocates {memory} bytes at one time, and {} are allowed",
                self.memory_max
            ),
            Ok(()) => return,
        };
        panic!(
            "the case with seed {seed} {why}; its input of {} bytes is b\"{}\"; again: {}",
            input.len(),
            input.escape_ascii(),
            self.again(seed)
        );
    }

    /// The command that runs a case again.
    fn again(&self, seed: u64) -> String {
        format!("{SEED}={seed} {}", self.command())
    }

    fn command(&self) -> String {
        let Self { package, name, .. } = self;
        format!("cargo test --profile checked -p {package} {name}")
    }
}

fn variable(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    let number = text.parse();
    Some(number.unwrap_or_else(|_| panic!("{name}={text:?} is no number")))
}

/// Aborts the process if a case does not end.
struct Watch {
    state: Arc<State>,
    thread: Option<thread::JoinHandle<()>>,
}

#[derive(Default)]
struct State {
    seed: AtomicU64,
    cases: AtomicU64,
    is_over: AtomicBool,
}

impl Watch {
    fn start(command: String) -> Self {
        let state = Arc::new(State::default());
        let of_thread = Arc::clone(&state);
        let thread = thread::spawn(move || of_thread.watch(&command));
        let thread = Some(thread);
        Self { state, thread }
    }

    fn begin(&self, seed: u64) {
        self.state.seed.store(seed, Relaxed);
        self.state.cases.fetch_add(1, Relaxed);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.state.is_over.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

impl State {
    fn watch(&self, command: &str) {
        let (mut cases, mut since) = (0, Instant::now());
        while !self.is_over.load(Relaxed) {
            thread::park_timeout(Duration::from_secs(1));
            let now = self.cases.load(Relaxed);
            if now != cases {
                (cases, since) = (now, Instant::now());
            } else if since.elapsed() > ENDLESS {
                let seed = self.seed.load(Relaxed);
                eprintln!("the case with seed {seed} does not end; again: {SEED}={seed} {command}");
                std::process::abort();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::hint::black_box;

    use super::*;

    #[global_allocator]
    static ALLOCATOR: Counting = Counting;

    fn message(run: impl FnOnce()) -> String {
        let panic = catch_unwind(AssertUnwindSafe(run)).unwrap_err();
        panic.downcast_ref::<String>().unwrap().clone()
    }

    #[test]
    fn a_failure_names_the_case_that_fails_again() {
        let corpus = [b"abc".to_vec()];
        let target = Target::new("this-crate", "this_test", &corpus).cases(500);
        let check =
            |input: &[u8], _: &mut Draw| assert!(!input.starts_with(b"ab") || input == b"abc");
        let text = message(|| target.run(check));
        let seed = text
            .split("seed ")
            .nth(1)
            .unwrap()
            .split(' ')
            .next()
            .unwrap();
        let command = format!(
            "CONCURVE_FUZZ_SEED={seed} cargo test --profile checked -p this-crate this_test"
        );
        assert!(
            text.contains("panics") && text.ends_with(&command),
            "{text}"
        );
        let watch = Watch::start(String::new());
        let again = message(|| target.case(seed.parse().unwrap(), &watch, &check));
        assert_eq!(again, text);
    }

    #[test]
    fn the_same_cases_run_each_time() {
        let inputs = || {
            let seen = RefCell::new(Vec::new());
            let target = Target::new("", "", &[]).cases(50);
            target.run(|input, draw| seen.borrow_mut().push((input.to_vec(), draw.number())));
            seen.into_inner()
        };
        assert_eq!(inputs().len(), 50);
        assert_eq!(inputs(), inputs());
    }

    #[test]
    fn memory_beyond_the_bound_fails() {
        let target = Target::new("", "", &[]).cases(1);
        let takes_1000 = |_: &[u8], _: &mut Draw| drop(black_box(vec![1_u8; 1000]));
        target.run(takes_1000);
        let text = message(|| target.clone().memory_max(999).run(takes_1000));
        assert!(text.contains("allocates 1000 bytes"), "{text}");
    }
}
