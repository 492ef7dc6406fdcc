//! A library to be loaded before all others (`LD_PRELOAD`): it makes a program hold some of its locks
//! longer, by a factor, to find out what holding them costs (decision 67).
//!
//! It stands in front of the mutexes and reader-writer locks of the C library. A lock is meant if it
//! is ever taken at one of the places that `CONCURVE_PERTURB_SITES` names. Before such a lock is given
//! back, its thread computes for a multiple of the time for which it held the lock. At the end of a
//! process the number of holds and their time go to the report channel.
//!
//! It uses nothing but the standard library, and allocates nothing while a lock is taken or given back.
#![allow(unsafe_code)]

#[cfg(not(test))]
mod exported;
mod holds;
mod setting;
mod sites;
mod system;
mod table;
mod totals;

use std::cell::Cell;
use std::ffi::c_int;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::setting::Setting;
use crate::table::{Known, Table};
use crate::totals::Totals;

/// What `pthread_mutex_lock` says of a robust mutex whose owner died: it is taken.
const OWNER_DIED: c_int = 130;
/// Once a lock has been looked at so often without being one of the meant, only one in so many of a
/// thread's acquisitions is looked at.
const LOOK_AGAIN_EVERY: u32 = 512;

static IS_ON: AtomicBool = AtomicBool::new(false);
static SETTING: OnceLock<Setting> = OnceLock::new();
static LOCKS: Table = Table::new();
static TOTALS: Totals = Totals::new();

thread_local! {
    /// While a thread looks at its stack, the locks that this takes are not looked at.
    static IS_LOOKING: Cell<bool> = const { Cell::new(false) };
    static ACQUISITIONS: Cell<u32> = const { Cell::new(0) };
}

/// Reads what is asked for. Called once, before the program's own code.
pub fn begin() {
    if let Some(setting) = Setting::from_environment() {
        sites::find(&setting);
        TOTALS.begin();
        IS_ON.store(SETTING.set(setting).is_ok(), Ordering::Release);
    }
}

/// Reports what was done. Called once, after the program's own code.
pub fn end() {
    let Some(setting) = SETTING.get() else { return };
    if IS_ON.swap(false, Ordering::AcqRel) && sites::is_found() {
        TOTALS.report(&setting.report);
    }
}

/// A process that was forked counts its own holds.
pub extern "C" fn forked() {
    TOTALS.clear();
}

/// Takes a lock by `take`, and remembers since when the thread has it, if it is one of the meant.
pub fn acquire(lock: usize, take: impl FnOnce() -> c_int) -> c_int {
    let is_meant = IS_ON.load(Ordering::Acquire) && is_meant(lock);
    let result = take();
    if is_meant && (result == 0 || result == OWNER_DIED) {
        holds::begin(lock, system::ticks());
    }
    result
}

/// Holds a lock longer, if it is one of the meant; then `give` gives it back.
pub fn release<T>(lock: usize, give: impl FnOnce() -> T) -> T {
    if IS_ON.load(Ordering::Acquire) && LOCKS.known(lock) == Known::Meant {
        hold_longer(lock);
    }
    give()
}

/// A lock is gone: its memory may become another one.
pub fn destroyed(lock: usize) {
    if IS_ON.load(Ordering::Acquire) {
        LOCKS.forget(lock);
    }
}

fn hold_longer(lock: usize) {
    let now = system::ticks();
    let (Some(ended), Some(setting)) = (holds::end(lock), SETTING.get()) else {
        return;
    };
    let held = ended.held(now);
    let longer = setting.longer(held);
    while system::ticks().saturating_sub(now) < longer {
        std::hint::spin_loop();
    }
    holds::cover(&ended, system::ticks());
    TOTALS.add(held);
}

fn is_meant(lock: usize) -> bool {
    match LOCKS.known(lock) {
        Known::Meant => true,
        Known::Unknown => look(lock),
        Known::Other => {
            let so_far = ACQUISITIONS.get().wrapping_add(1);
            ACQUISITIONS.set(so_far);
            so_far.is_multiple_of(LOOK_AGAIN_EVERY) && look(lock)
        }
    }
}

/// Is the lock taken at one of the places now?
fn look(lock: usize) -> bool {
    let Some(setting) = SETTING.get() else {
        return false;
    };
    if IS_LOOKING.replace(true) {
        return false;
    }
    let is_meant = sites::is_on_stack(setting);
    IS_LOOKING.set(false);
    LOCKS.looked(lock, is_meant);
    is_meant
}
