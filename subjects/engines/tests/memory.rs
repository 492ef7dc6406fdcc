//! The shared heap in one process: allocations do not overlap, and freed memory is used again.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, OnceLock, mpsc};
use std::thread;

use concurve_engines::memory::{self, SharedAllocator};
use proptest::prelude::*;

#[global_allocator]
static ALLOCATOR: SharedAllocator = SharedAllocator;

/// Opens the memory; tests that check how much is used run one after the other.
fn open() -> MutexGuard<'static, ()> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    static OPENED: OnceLock<()> = OnceLock::new();
    let guard = ONE_AT_A_TIME
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    OPENED.get_or_init(|| memory::open(256 << 20, "raise the test's limit").expect("memory"));
    guard
}

fn used() -> usize {
    memory::usage().expect("open").used_bytes
}

/// A piece of memory that is filled with its number.
struct Piece {
    place: *mut u8,
    layout: Layout,
    number: u8,
}

// SAFETY: only the piece uses its memory.
unsafe impl Send for Piece {}

impl Piece {
    fn new(bytes: usize, align: usize, number: u8) -> Self {
        let layout = Layout::from_size_align(bytes, align).expect("sound");
        // SAFETY: sizes are not 0.
        let place = unsafe { ALLOCATOR.alloc(layout) };
        assert!(!place.is_null());
        assert_eq!(place.addr() % align, 0);
        // SAFETY: it is this long.
        unsafe { place.write_bytes(number, bytes) };
        Self {
            place,
            layout,
            number,
        }
    }

    fn resize(&mut self, bytes: usize) {
        let kept = bytes.min(self.layout.size());
        // SAFETY: the place is of this layout, and sizes are not 0.
        self.place = unsafe { ALLOCATOR.realloc(self.place, self.layout, bytes) };
        self.layout = Layout::from_size_align(bytes, self.layout.align()).expect("sound");
        self.check(kept);
        // SAFETY: it is this long.
        unsafe { self.place.write_bytes(self.number, bytes) };
    }

    fn check(&self, bytes: usize) {
        // SAFETY: it is this long, and was written.
        let content = unsafe { std::slice::from_raw_parts(self.place, bytes) };
        assert!(
            content.iter().all(|it| *it == self.number),
            "the memory was overwritten"
        );
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.check(self.layout.size());
        // SAFETY: it was allocated with this layout.
        unsafe { ALLOCATOR.dealloc(self.place, self.layout) };
    }
}

/// Mostly small sizes, up to a few units.
fn sizes() -> impl Strategy<Value = usize> {
    prop_oneof![6 => 1_usize..300, 3 => 1_usize..40_000, 1 => 1_usize..2_000_000]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn pieces_never_overlap_and_survive_resizing(
        steps in prop::collection::vec((0..4, sizes(), 0_u32..18, any::<prop::sample::Index>()), 1..300)
    ) {
        let _guard = open();
        let mut pieces = Vec::new();
        for (number, (step, bytes, shift, which)) in steps.into_iter().enumerate() {
            match step {
                0 if !pieces.is_empty() => drop(pieces.swap_remove(which.index(pieces.len()))),
                1 if !pieces.is_empty() => {
                    let at = which.index(pieces.len());
                    let piece: &mut Piece = &mut pieces[at];
                    piece.resize(bytes);
                }
                _ => pieces.push(Piece::new(bytes, 1 << shift, number as u8)),
            }
        }
    }
}

#[test]
fn memory_that_other_threads_free_is_used_again() {
    let _guard = open();
    // One thread allocates, the other frees: the memory in use must not grow with the number of
    // pieces.
    let (send, receive) = mpsc::sync_channel::<Vec<Piece>>(2);
    let round = |first: usize| -> Vec<Piece> {
        let sizes = [24, 100, 1000, 5000, 40_000];
        let pieces = (0..500).map(|at| Piece::new(sizes[at % 5], 8, (first + at) as u8));
        pieces.collect()
    };
    let consumer = thread::spawn(move || receive.into_iter().map(|it| it.len()).sum::<usize>());
    let mut most = 0;
    for number in 0..100 {
        send.send(round(number)).expect("it listens");
        if number == 20 {
            most = used();
        }
    }
    drop(send);
    assert_eq!(consumer.join().expect("no panic"), 50_000);
    // 500 pieces are 4.6 MB; five rounds are under way at most.
    assert!(used() <= most + (24 << 20), "{} after {most}", used());
    assert!(used() < 64 << 20);
}

#[test]
fn ended_threads_leave_no_memory_in_use() {
    let _guard = open();
    let work = || {
        let mut map = HashMap::new();
        for number in 0..2000_u32 {
            map.insert(number, "x".repeat(number as usize % 700));
            map.remove(&(number / 2));
        }
        map.len()
    };
    let rounds = |count| {
        for _ in 0..count {
            let threads: Vec<_> = (0..4).map(|_| thread::spawn(work)).collect();
            threads
                .into_iter()
                .for_each(|it| assert_eq!(it.join().expect("no panic"), 1000));
        }
        used()
    };
    let before = rounds(10);
    let after = rounds(30);
    assert!(after <= before + (4 << 20), "{after} after {before}");
}

#[test]
fn a_free_slab_is_used_for_other_sizes() {
    let _guard = open();
    let before = used();
    for bytes in [16, 48, 700, 9000, 30_000] {
        let pieces: Vec<_> = (0..(32 << 20) / bytes)
            .map(|at| Piece::new(bytes, 1, at as u8))
            .collect();
        assert!(used() >= before + (32 << 20) * 9 / 10);
        drop(pieces);
        assert!(
            used() <= before + (2 << 20),
            "{} of {bytes}",
            used() - before
        );
    }
}

#[test]
fn allocations_beyond_the_memory_fail_without_harm() {
    let _guard = open();
    let mut list: Vec<u8> = Vec::new();
    assert!(list.try_reserve_exact(300 << 20).is_err());
    assert!(memory::is_exhausted());
    list.try_reserve_exact(20 << 20).expect("there is so much");
    assert!(memory::usage().expect("open").peak_bytes >= 20 << 20);
}

#[test]
fn an_unusable_size_is_refused() {
    let error = memory::open(1000, "raise --memory").expect_err("too small");
    assert!(error.to_string().contains("1 MiB to 64 GiB"));
    assert!(error.to_string().contains("--memory"));
}

#[test]
fn it_is_opened_once() {
    let _guard = open();
    let error = memory::open(1 << 20, "raise --memory").expect_err("it is open");
    assert_eq!(
        error.to_string(),
        "it is open already, and a process has one"
    );
}
