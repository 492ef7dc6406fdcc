//! The memory in which threads and processes say what they hold.
#![allow(unsafe_code)]

use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::atomic::{AtomicPtr, AtomicU32};
use std::time::Duration;

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

use crate::class::Names;
use crate::seat::{self, SEATS, Seat};

/// The exit status of a process that left because it waited for a latch that nobody will give back.
pub const LEFT: i32 = 75;

/// How long anybody sleeps before he looks whether it is in vain, unless told otherwise.
const PATIENCE: Duration = Duration::from_millis(500);

/// All zeros is an empty board.
#[repr(C)]
pub struct Board {
    pub failed: AtomicU32,
    /// 0: as [`PATIENCE`].
    patience_ms: AtomicU32,
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
        Self::set(ptr::null_mut())
    }

    pub fn patience(&self) -> Duration {
        match self.patience_ms.load(Relaxed) {
            0 => PATIENCE,
            ms => Duration::from_millis(ms.into()),
        }
    }

    /// Puts a new board in the place of an old one, unless somebody else did.
    #[cold]
    fn set(old: *mut Board) -> &'static Board {
        let new = map();
        let board = match BOARD.compare_exchange(old, new.as_ptr(), AcqRel, Acquire) {
            Ok(_) => new,
            Err(other) => {
                // SAFETY: nobody else has seen the new one.
                let unmapped =
                    unsafe { rustix::mm::munmap(new.as_ptr().cast(), size_of::<Board>()) };
                debug_assert!(unmapped.is_ok());
                NonNull::new(other).expect("a board is never taken away")
            }
        };
        seat::leave_seats_at_forks();
        // SAFETY: as above.
        unsafe { board.as_ref() }
    }
}

/// Zeros that all children share. Of the address space only: pages come when they are touched.
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

/// Gives this process, and those it forks from now on, a board of its own: nobody has failed,
/// nothing is held, nothing counted.
///
/// To be called while the process has one thread, which holds no latch. Latches in use before must
/// not be used after: their classes are those of the old board.
pub fn renew() {
    seat::forget();
    Board::set(BOARD.load(Acquire));
}

/// Says that some latch will never be given back: everyone who waits, now or later, leaves his
/// process.
pub fn fail() {
    Board::get().failed.store(1, Relaxed);
}

/// How long who waits for a latch sleeps before he looks whether he does so in vain: half a second,
/// unless told otherwise.
pub fn look_every(time: Duration) {
    let ms = time.as_millis().clamp(1, u32::MAX.into()) as u32;
    Board::get().patience_ms.store(ms, Relaxed);
}

/// Whether somebody said so.
pub fn is_failed() -> bool {
    Board::get().failed.load(Relaxed) != 0
}

/// Ends this process if waiting is in vain. Nothing is unwound: destructors would meet the same
/// latch, and what they would put in order is lost with the memory.
pub fn leave_if_failed() {
    if is_failed() {
        // SAFETY: ends the process.
        unsafe { libc::_exit(LEFT) }
    }
}
