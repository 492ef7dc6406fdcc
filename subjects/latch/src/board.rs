//! The shared memory in which threads of all processes record what latches they hold.
#![allow(unsafe_code)]

use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::atomic::{AtomicPtr, AtomicU32};
use std::time::Duration;

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

use crate::class::{Class, Names, Spin};
use crate::seat::{SEATS, Seat};

/// The exit status of a process that waited for a latch that will never be released.
pub const EXIT_LATCH_LOST: i32 = 75;

/// Default of [`check_failure_every`].
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// All zeros is an empty board.
#[repr(C)]
pub struct Board {
    failed: AtomicU32,
    /// 0: as [`CHECK_INTERVAL`].
    check_interval_ms: AtomicU32,
    pub names: Names,
    /// Seats from this one on were never taken.
    pub top: AtomicU32,
    pub seats: [Seat; SEATS],
}

/// The board of this process and of its children. Never unmapped: threads keep references to seats.
static BOARD: AtomicPtr<Board> = AtomicPtr::new(ptr::null_mut());

impl Board {
    /// The board; the first call makes it.
    pub fn get() -> &'static Board {
        let found = BOARD.load(Acquire);
        if let Some(board) = NonNull::new(found) {
            // SAFETY: a board is mapped for as long as the process lives, and has atomics only.
            return unsafe { board.as_ref() };
        }
        Self::replace(ptr::null_mut())
    }

    /// Gives this process a new board.
    pub fn renew() {
        Self::replace(BOARD.load(Acquire));
    }

    /// How long a thread sleeps at most before it checks whether its latch is lost.
    pub fn check_interval(&self) -> Duration {
        match self.check_interval_ms.load(Relaxed) {
            0 => CHECK_INTERVAL,
            ms => Duration::from_millis(ms.into()),
        }
    }

    /// All seats that a thread has ever taken.
    pub fn ever_taken(&self) -> impl Iterator<Item = &Seat> {
        self.seats[..self.top.load(Acquire) as usize].iter()
    }

    /// All seats that a thread has taken.
    pub fn taken(&self) -> impl Iterator<Item = &Seat> {
        self.ever_taken().filter(|it| it.is_taken())
    }

    /// Replaces an old board by a new one, unless another thread was faster.
    #[cold]
    fn replace(old: *mut Board) -> &'static Board {
        let new = map();
        let board = match BOARD.compare_exchange(old, new.as_ptr(), AcqRel, Acquire) {
            Ok(_) => new,
            Err(other) => {
                // SAFETY: no other thread has seen the new one.
                let unmapped =
                    unsafe { rustix::mm::munmap(new.as_ptr().cast(), size_of::<Board>()) };
                debug_assert!(unmapped.is_ok());
                NonNull::new(other).expect("a board is never taken away")
            }
        };
        // SAFETY: as above.
        unsafe { board.as_ref() }
    }
}

/// Zeros that all children share. Address space only: pages are allocated when they are touched.
fn map() -> NonNull<Board> {
    // SAFETY: a new mapping, placed by the kernel.
    let mapped = unsafe {
        mmap_anonymous(
            ptr::null_mut(),
            size_of::<Board>(),
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::SHARED | MapFlags::NORESERVE,
        )
    };
    let megabytes = size_of::<Board>() >> 20;
    let Ok(memory) = mapped else {
        panic!(
            "no {megabytes} MiB of address space for the counts of latches: raise the limit (ulimit -v)"
        )
    };
    NonNull::new(memory.cast()).expect("the kernel maps nothing at address 0")
}

impl Class {
    /// The class of this name, in all processes that share the board.
    ///
    /// # Panics
    /// If the name is longer than 40 bytes, or there are more than 31 of them.
    pub fn named(name: &str) -> Self {
        Board::get().names.class(name, exit_if_failed)
    }

    /// The same class, whose latches are waited for in this way from now on.
    #[must_use]
    pub fn spinning(self, spin: Spin) -> Self {
        Board::get().names.set_spin(self, spin);
        self
    }
}

/// Sets how latches are waited for whose class sets nothing else.
pub fn spin_by_default(spin: Spin) {
    Board::get().names.set_spin(Class::OTHER, spin);
}

/// Reports that some latch will never be released: each thread that waits for one, now or later,
/// ends its process.
pub fn fail() {
    Board::get().failed.store(1, Relaxed);
}

/// Whether [`fail`] was called.
pub fn is_failed() -> bool {
    Board::get().failed.load(Relaxed) != 0
}

/// Sets how long a thread that waits for a latch sleeps before it checks whether the latch is lost;
/// half a second by default.
pub fn check_failure_every(time: Duration) {
    let ms = time.as_millis().clamp(1, u32::MAX.into()) as u32;
    Board::get().check_interval_ms.store(ms, Relaxed);
}

/// Ends this process if [`fail`] was called. The stack is not unwound: destructors would wait for
/// the same latch, and the shared memory that they would clean up is discarded anyway.
pub fn exit_if_failed() {
    if is_failed() {
        // SAFETY: ends the process.
        unsafe { libc::_exit(EXIT_LATCH_LOST) }
    }
}
