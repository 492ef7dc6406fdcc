//! The seat of the calling thread, and the engine that it belongs to.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32};

use crate::board::Board;
use crate::seat::{SEATS, Seat};

thread_local! {
    /// Without a destructor, so that an access costs one instruction, and so that an allocator may
    /// use it.
    static SEAT: Cell<*const Seat> = const { Cell::new(ptr::null()) };
}

/// The engine that threads of this process belong to.
static ENGINE: AtomicU32 = AtomicU32::new(0);

/// One more than the key whose destructor the C library calls when a thread ends, after all
/// destructors of Rust: those may use latches. 0: there is no key yet.
///
/// No lock guards this and [`FORGETS_AT_FORK`]: a child that was forked while another thread held
/// the lock would wait for it for ever.
static AT_THREAD_END: AtomicU32 = AtomicU32::new(0);

/// Whether [`forget`] is called in forked children.
static FORGETS_AT_FORK: AtomicBool = AtomicBool::new(false);

/// Counts up in each forked child.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// The seat of this thread.
#[inline]
pub fn mine() -> &'static Seat {
    let seat = SEAT.get();
    if seat.is_null() {
        return take_seat();
    }
    // SAFETY: seats are mapped for as long as the process lives.
    unsafe { &*seat }
}

#[cold]
#[inline(never)]
fn take_seat() -> &'static Seat {
    let board = Board::get();
    let claim = |seat: &Seat| {
        seat.is_taken.load(Relaxed) == 0
            && seat
                .is_taken
                .compare_exchange(0, 1, AcqRel, Relaxed)
                .is_ok()
    };
    let Some(number) = board.seats.iter().position(claim) else {
        panic!("more than {SEATS} threads use latches: start fewer")
    };
    let seat = &board.seats[number];
    board.top.fetch_max(number as u32 + 1, Release);
    seat.mark.store(number as u32 + 1, Relaxed);
    seat.engine.store(ENGINE.load(Relaxed), Relaxed);
    forget_at_fork();
    SEAT.set(seat);
    free_at_thread_end(seat);
    seat
}

/// A forked child is another thread than the one whose copy it is: it takes a seat of its own.
fn forget_at_fork() {
    if !FORGETS_AT_FORK.load(Acquire) {
        // Two threads may both register it, which does no harm.
        // SAFETY: the handler only sets a variable of its own thread.
        unsafe { libc::pthread_atfork(None, None, Some(forget)) };
        FORGETS_AT_FORK.store(true, Release);
    }
}

fn free_at_thread_end(seat: &Seat) {
    let key = match AT_THREAD_END.load(Acquire) {
        0 => make_key(),
        number => number - 1,
    };
    // SAFETY: the pointer only has to differ from null. Without memory for it the seat is kept.
    unsafe { libc::pthread_setspecific(key, ptr::from_ref(seat).cast()) };
}

#[cold]
fn make_key() -> libc::pthread_key_t {
    let mut key = 0;
    // SAFETY: `key` is written to.
    let made = unsafe { libc::pthread_key_create(&mut key, Some(free_seat)) };
    assert_eq!(made, 0, "too many keys of the C library are in use");
    match AT_THREAD_END.compare_exchange(0, key + 1, AcqRel, Acquire) {
        Ok(_) => key,
        Err(number) => {
            // SAFETY: no other thread knows this key.
            unsafe { libc::pthread_key_delete(key) };
            number - 1
        }
    }
}

extern "C" fn free_seat(_: *mut c_void) {
    let seat = SEAT.replace(ptr::null());
    if !seat.is_null() {
        // SAFETY: seats are mapped for as long as the process lives.
        unsafe { &*seat }.is_taken.store(0, Release);
    }
}

extern "C" fn forget() {
    SEAT.set(ptr::null());
    FORKS.fetch_add(1, Relaxed);
}

/// A number that is another one in each forked child than in its parent, once the parent has used
/// a latch: what a fork has copied is not the child's own.
#[inline]
pub fn forks() -> u32 {
    FORKS.load(Relaxed)
}

/// Gives this process, and those that it forks from now on, a new board: not failed, no latch held,
/// nothing counted.
///
/// To be called while the process has one thread, which holds no latch. Latches used before must
/// not be used afterwards: their classes are those of the old board.
pub fn renew() {
    SEAT.set(ptr::null());
    Board::renew();
}

/// The number of this thread's seat: less than [`SEATS`], and unique among the threads that live.
#[inline]
pub fn seat_number() -> usize {
    mine().mark() as usize - 1
}

/// The engine that this thread belongs to; 0: none.
pub fn engine() -> u32 {
    mine().engine.load(Relaxed)
}

/// Assigns this thread, and those that this process will start, to an engine, from 1.
///
/// To be called first in a forked process.
pub fn set_engine_of_process(number: u32) {
    ENGINE.store(number, Relaxed);
    set_engine_of_thread(number);
}

/// Assigns this thread to an engine, from 1.
pub fn set_engine_of_thread(number: u32) {
    mine().engine.store(number, Relaxed);
}

/// Frees the seats of an engine whose process has ended holding no latch.
pub fn reap(engine: u32) {
    for seat in Board::get().taken() {
        if seat.engine.load(Relaxed) == engine {
            seat.is_taken.store(0, Release);
        }
    }
}
