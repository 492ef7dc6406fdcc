//! Sleeping until a word changes, between processes too.

use std::sync::atomic::AtomicU32;
use std::time::Duration;

use rustix::thread::futex::{self, Flags, Timespec};

use crate::board::{Board, leave_if_failed};

/// Sleeps while the word has this value, for `time` at most, and not without looking now and then
/// whether it is in vain. May return early.
pub fn sleep(word: &AtomicU32, value: u32, time: Duration) {
    leave_if_failed();
    let time = time.min(Board::get().patience());
    let timeout = Timespec {
        tv_sec: time.as_secs() as i64,
        tv_nsec: time.subsec_nanos().into(),
    };
    // Whatever it returns, the caller looks at the word again.
    let _ = futex::wait(word, Flags::empty(), value, Some(&timeout));
    leave_if_failed();
}

/// Sleeps while the word has this value, and may return early.
pub fn sleep_on(word: &AtomicU32, value: u32) {
    sleep(word, value, Duration::MAX);
}

/// Wakes one who sleeps; whether there was one.
pub fn wake_one(word: &AtomicU32) -> bool {
    futex::wake(word, Flags::empty(), 1).is_ok_and(|woken| woken > 0)
}

/// Wakes all who sleep.
pub fn wake_all(word: &AtomicU32) {
    let _ = futex::wake(word, Flags::empty(), i32::MAX as u32);
}
