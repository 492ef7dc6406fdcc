//! The protocol of versions under a weak memory model, all executions of it.
//!
//! A reader without a latch writes nothing, so no writer depends on it. The writers take turns under a
//! latch, so they are one sequence of stores. They run first, and what they store is kept; then the
//! reader runs again and again, until it has read, at each load, every value that it may see there. What
//! it may see is what Kang et al. define for release, acquire, relaxed accesses and fences (A Promising
//! Semantics for Relaxed-Memory Concurrency, POPL 2017), without promises: nobody stores what it has
//! read of the other.

#[path = "../src/version.rs"]
mod version;

mod atomic {
    //! Atomics whose loads by the reader return any value that the memory model allows.

    use std::cell::RefCell;
    pub use std::sync::atomic::Ordering;

    /// For each word, the number of the oldest store that may still be seen.
    type View = Vec<usize>;

    /// A store, and what who has acquired it knows.
    #[derive(Debug, Clone)]
    struct Message {
        value: u64,
        view: View,
    }

    #[derive(Debug, Default, Clone)]
    struct Thread {
        view: View,
        /// Known after the next acquire fence.
        acquired: View,
        /// What was known at the last release fence.
        released: View,
    }

    #[derive(Debug, Default)]
    struct Memory {
        words: Vec<Vec<Message>>,
        thread: Thread,
        is_reader: bool,
        /// The choice at each load of the reader, and how many there are.
        choices: Vec<(usize, usize)>,
        loads: usize,
    }

    thread_local! {
        static MEMORY: RefCell<Memory> = RefCell::default();
    }

    fn of(view: &View, word: usize) -> usize {
        view.get(word).copied().unwrap_or(0)
    }

    fn join(view: &mut View, other: &View) {
        view.resize(view.len().max(other.len()), 0);
        for (one, other) in view.iter_mut().zip(other) {
            *one = (*one).max(*other);
        }
    }

    #[derive(Debug)]
    pub struct AtomicU64(usize);

    impl AtomicU64 {
        pub fn new(value: u64) -> Self {
            MEMORY.with_borrow_mut(|memory| {
                let view = View::new();
                memory.words.push(vec![Message { value, view }]);
                Self(memory.words.len() - 1)
            })
        }

        pub fn store(&self, value: u64, order: Ordering) {
            MEMORY.with_borrow_mut(|memory| {
                assert!(!memory.is_reader, "a reader writes nothing");
                let at = memory.words[self.0].len();
                let own = &mut memory.thread.view;
                own.resize(own.len().max(self.0 + 1), 0);
                own[self.0] = at;
                let mut view = match order {
                    Ordering::Release => own.clone(),
                    _ => memory.thread.released.clone(),
                };
                view.resize(view.len().max(self.0 + 1), 0);
                view[self.0] = at;
                memory.words[self.0].push(Message { value, view });
            });
        }

        pub fn load(&self, order: Ordering) -> u64 {
            MEMORY.with_borrow_mut(|memory| {
                let stores = memory.words[self.0].len();
                let oldest = of(&memory.thread.view, self.0);
                let at = match memory.is_reader {
                    false => stores - 1,
                    true => oldest + memory.choose(stores - oldest),
                };
                let message = memory.words[self.0][at].clone();
                let thread = &mut memory.thread;
                let mut seen = vec![0; self.0 + 1];
                seen[self.0] = at;
                join(&mut thread.view, &seen);
                match order {
                    Ordering::Acquire => join(&mut thread.view, &message.view),
                    _ => join(&mut thread.acquired, &message.view),
                }
                message.value
            })
        }
    }

    impl Memory {
        fn choose(&mut self, possible: usize) -> usize {
            if self.loads == self.choices.len() {
                self.choices.push((0, possible));
            }
            let (choice, among) = self.choices[self.loads];
            assert_eq!(
                among, possible,
                "the reader does the same after the same choices"
            );
            self.loads += 1;
            choice
        }
    }

    pub fn fence(order: Ordering) {
        MEMORY.with_borrow_mut(|memory| {
            let thread = &mut memory.thread;
            match order {
                Ordering::Acquire => join(&mut thread.view, &thread.acquired),
                Ordering::Release => thread.released = thread.view.clone(),
                _ => unreachable!("no other fence is used"),
            }
        });
    }

    /// Calls the reader once for each execution that is possible after the stores up to now.
    pub fn each_execution(mut reader: impl FnMut()) -> usize {
        let mut executions = 0;
        MEMORY.with_borrow_mut(|memory| {
            memory.is_reader = true;
            memory.choices.clear();
        });
        loop {
            MEMORY.with_borrow_mut(|memory| {
                memory.thread = Thread::default();
                memory.loads = 0;
            });
            reader();
            executions += 1;
            let goes_on = MEMORY.with_borrow_mut(|memory| {
                memory.choices.truncate(memory.loads);
                while let Some((choice, possible)) = memory.choices.pop() {
                    if choice + 1 < possible {
                        memory.choices.push((choice + 1, possible));
                        return true;
                    }
                }
                memory.is_reader = false;
                false
            });
            if !goes_on {
                return executions;
            }
        }
    }
}

use std::collections::BTreeSet;

use atomic::AtomicU64;
use atomic::Ordering::{Acquire, Relaxed, Release};
use version::Version;

/// A page of two words, and the count of exclusive locks on its record.
struct Page {
    version: Version,
    words: [AtomicU64; 2],
    locks: AtomicU64,
    /// Set when the transaction that wrote this value has committed.
    committed: AtomicU64,
}

const BEFORE: u64 = 10;
const ABORTED: u64 = 11;
const COMMITTED: u64 = 12;

impl Page {
    fn new() -> Self {
        let page = Self {
            version: Version::invalid(),
            words: [AtomicU64::new(0), AtomicU64::new(0)],
            locks: AtomicU64::new(0),
            committed: AtomicU64::new(0),
        };
        // Read from the disk.
        page.words.iter().for_each(|it| it.store(BEFORE, Relaxed));
        page.version.end_change();
        page
    }

    fn change(&self, value: u64) {
        self.version.begin_change();
        self.words.iter().for_each(|it| it.store(value, Relaxed));
        self.version.end_change();
    }

    /// A transaction that is undone, and one that commits.
    fn write(&self) {
        self.locks.store(1, Release);
        self.change(ABORTED);
        self.change(BEFORE);
        self.locks.store(0, Release);
        self.locks.store(1, Release);
        self.change(COMMITTED);
        self.locks.store(0, Release);
        self.committed.store(1, Release);
        assert!(self.version.is_valid());
    }

    fn words(&self) -> [u64; 2] {
        [self.words[0].load(Relaxed), self.words[1].load(Relaxed)]
    }
}

/// All that a reader can return after the writers' stores, and in how many executions.
fn all(reader: impl Fn(&Page) -> Option<[u64; 2]>) -> (BTreeSet<[u64; 2]>, usize) {
    let page = Page::new();
    page.write();
    let mut results = BTreeSet::new();
    let executions = atomic::each_execution(|| results.extend(reader(&page)));
    (results, executions)
}

fn read(page: &Page) -> Option<[u64; 2]> {
    let seen = page.version.to_read()?;
    let words = page.words();
    let is_free = page.locks.load(Acquire) == 0;
    (is_free && page.version.is_still(seen)).then_some(words)
}

#[test]
fn a_reader_returns_only_what_is_committed_and_whole() {
    let (results, executions) = all(read);
    assert_eq!(results, [[BEFORE; 2], [COMMITTED; 2]].into());
    assert!(executions > 100, "only {executions} executions");
}

#[test]
fn a_reader_that_begins_after_a_commit_sees_it() {
    let (results, _) = all(|page| {
        let is_committed = page.committed.load(Acquire) == 1;
        read(page).filter(|_| is_committed)
    });
    assert_eq!(results, [[COMMITTED; 2]].into());
}

#[test]
fn without_the_locks_it_would_return_what_is_not_committed() {
    let (results, _) = all(|page| {
        let seen = page.version.to_read()?;
        let words = page.words();
        page.version.is_still(seen).then_some(words)
    });
    assert!(results.contains(&[ABORTED; 2]), "{results:?}");
    let is_torn = |words: &[u64; 2]| words[0] != words[1];
    assert!(!results.iter().any(is_torn), "{results:?}");
}

#[test]
fn with_the_locks_looked_at_first_it_would_return_what_is_not_committed() {
    let (results, _) = all(|page| {
        let is_free = page.locks.load(Acquire) == 0;
        let seen = page.version.to_read()?;
        let words = page.words();
        (is_free && page.version.is_still(seen)).then_some(words)
    });
    assert!(results.contains(&[ABORTED; 2]), "{results:?}");
}

#[test]
fn without_the_check_of_the_version_it_would_return_parts_of_several() {
    let (results, _) = all(|page| {
        page.version.to_read()?;
        Some(page.words())
    });
    assert!(results.contains(&[BEFORE, COMMITTED]), "{results:?}");
}
