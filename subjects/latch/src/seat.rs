//! Where a thread says what it holds, and counts.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};

use crate::board::Board;
use crate::class::{CLASSES, Class};

/// Threads that may use latches at the same time, in all processes of a board.
pub const SEATS: usize = 4096;

/// One thread's seat.
#[repr(C, align(64))]
pub struct Seat {
    is_taken: AtomicU32,
    /// The engine whose thread sits here; 0: none's.
    pub engine: AtomicU32,
    /// Its number from 1: what stands in the latches that its thread holds.
    mark: AtomicU32,
    pub tallies: [Tally; CLASSES],
}

/// What one thread did with latches of one class, since the board was made. Written by that thread
/// alone: no addition needs to be atomic.
#[repr(C, align(64))]
pub struct Tally {
    /// Counted before it is tried to take one, and taken back if that was in vain.
    pub begun: AtomicU64,
    /// Counted after one was given back.
    pub ended: AtomicU64,
    /// Taken by somebody else at first.
    pub waits: AtomicU64,
    /// Looks at a taken one.
    pub spins: AtomicU64,
    /// Sleeps.
    pub sleeps: AtomicU64,
}

/// Adds to a counter that nobody else writes.
#[inline]
pub fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(more), Relaxed);
}

impl Tally {
    #[inline]
    pub fn begin(&self) {
        add(&self.begun, 1);
    }

    #[inline]
    pub fn take_back(&self) {
        add(&self.begun, u64::MAX);
    }

    #[inline]
    pub fn end(&self) {
        add(&self.ended, 1);
    }

    pub fn held(&self) -> u64 {
        // What ended is read first: else a latch taken and given back in between would count as -1.
        let ended = self.ended.load(Acquire);
        self.begun.load(Acquire).saturating_sub(ended)
    }
}

impl Seat {
    #[inline]
    pub fn tally(&self, class: Class) -> &Tally {
        &self.tallies[class.place()]
    }

    #[inline]
    pub fn mark(&self) -> u32 {
        self.mark.load(Relaxed)
    }

    pub fn is_taken(&self) -> bool {
        self.is_taken.load(Acquire) != 0
    }
}

thread_local! {
    /// Without a destructor, so that reaching it costs one instruction, and so that an allocator may.
    static SEAT: Cell<*const Seat> = const { Cell::new(ptr::null()) };
}

/// The engine that threads of this process belong to.
static ENGINE: AtomicU32 = AtomicU32::new(0);

/// What the C library calls when a thread ends, after all destructors of Rust: those may use latches.
static AT_END: OnceLock<libc::pthread_key_t> = OnceLock::new();

/// Gives the seat back when the thread ends.
extern "C" fn stand_up(_: *mut c_void) {
    let seat = SEAT.replace(ptr::null());
    if !seat.is_null() {
        // SAFETY: seats are mapped for as long as the process lives.
        unsafe { &*seat }.is_taken.store(0, Release);
    }
}

fn stand_up_at_end(seat: &Seat) {
    let key = AT_END.get_or_init(|| {
        let mut key = 0;
        // SAFETY: `key` is written to.
        let made = unsafe { libc::pthread_key_create(&mut key, Some(stand_up)) };
        assert_eq!(made, 0, "too many keys of the C library are in use");
        key
    });
    // SAFETY: the pointer only has to differ from null. Without memory for it the seat is kept.
    unsafe { libc::pthread_setspecific(*key, ptr::from_ref(seat).cast()) };
}

/// The engine that this thread belongs to; 0: none.
pub fn engine() -> u32 {
    mine().engine.load(Relaxed)
}

/// The seat of this thread.
#[inline]
pub fn mine() -> &'static Seat {
    let seat = SEAT.get();
    if seat.is_null() {
        return sit_down();
    }
    // SAFETY: seats are mapped for as long as the process lives.
    unsafe { &*seat }
}

#[cold]
#[inline(never)]
fn sit_down() -> &'static Seat {
    let board = Board::get();
    let is_free = |seat: &Seat| {
        seat.is_taken.load(Relaxed) == 0
            && seat
                .is_taken
                .compare_exchange(0, 1, AcqRel, Relaxed)
                .is_ok()
    };
    let Some(number) = board.seats.iter().position(is_free) else {
        panic!("more than {SEATS} threads use latches: start fewer")
    };
    let seat = &board.seats[number];
    board.top.fetch_max(number as u32 + 1, Release);
    seat.mark.store(number as u32 + 1, Relaxed);
    seat.engine.store(ENGINE.load(Relaxed), Relaxed);
    SEAT.set(seat);
    stand_up_at_end(seat);
    seat
}

/// The number of this thread's seat: less than [`SEATS`], and nobody else's while the thread lives.
#[inline]
pub fn seat_number() -> usize {
    mine().mark() as usize - 1
}

/// Says that this thread, and those that this process will start, belong to an engine, from 1.
///
/// To be called first thing in a forked process.
pub fn be_engine(number: u32) {
    ENGINE.store(number, Relaxed);
    be_engine_thread(number);
}

/// Says that this thread belongs to an engine, from 1.
pub fn be_engine_thread(number: u32) {
    mine().engine.store(number, Relaxed);
}

/// Frees the seats of an engine whose process has ended holding nothing.
pub fn bury(engine: u32) {
    for seat in taken() {
        if seat.engine.load(Relaxed) == engine {
            seat.is_taken.store(0, Release);
        }
    }
}

/// All seats that somebody sits on.
pub fn taken() -> impl Iterator<Item = &'static Seat> {
    ever_taken().filter(|it| it.is_taken())
}

/// All seats that somebody ever sat on.
pub fn ever_taken() -> impl Iterator<Item = &'static Seat> {
    let board = Board::get();
    board.seats[..board.top.load(Acquire) as usize].iter()
}

/// The thread will take a new seat.
pub fn forget() {
    SEAT.set(ptr::null());
}

/// A forked child is another thread than the one whose copy it is.
pub fn leave_seats_at_forks() {
    extern "C" fn in_child() {
        forget();
    }
    // SAFETY: the handler only sets a variable of its own thread. Registered twice it does no harm.
    unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
}
