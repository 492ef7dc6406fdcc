//! Waiting for a latch: spinning, then sleeping on a futex.

use std::hint::spin_loop;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use rustix::thread::futex::{self, Flags, Timespec};

use crate::board::{Board, exit_if_failed};
use crate::class::{Class, Spin};
use crate::seat::{Tally, add};

/// The message of the panic of a thread that wants a latch whose holder panicked.
pub const BROKEN: &str = "a thread panicked while it held this latch";

/// A spinlock returns to its caller after this many spins, so that the caller can check for
/// failures.
const SPINS_MAX: u32 = 1 << 14;

/// How latches of a class are waited for.
pub fn spin_of(class: Class) -> Spin {
    Board::get().names.spin(class)
}

/// Reads a word until `is_over`, as often as the class allows; the last value read. To be called
/// again if the class never sleeps.
///
/// `others_sleep`: if another thread sleeps already, the latch is held for long, and spinning ends.
pub fn spin(
    word: &AtomicU32,
    class: Class,
    tally: &Tally,
    is_over: impl Fn(u32) -> bool,
    others_sleep: impl Fn(u32) -> bool,
) -> u32 {
    let spin = spin_of(class);
    let mut spins = 0;
    let value = loop {
        let value = word.load(Relaxed);
        if is_over(value) {
            break value;
        }
        match spin {
            Spin::Times(times) if spins >= times || others_sleep(value) => break value,
            Spin::Only if spins == SPINS_MAX => {
                exit_if_failed();
                break value;
            }
            _ => {}
        }
        spin_loop();
        spins += 1;
    };
    add(&tally.spins, u64::from(spins));
    value
}

/// Sleeps while the word has this value, for `time` at most, and not longer than the interval at
/// which a sleeper checks for failures. May return early. Processes that share the word may wake
/// it.
pub fn sleep(word: &AtomicU32, value: u32, time: Duration) {
    exit_if_failed();
    let time = time.min(Board::get().check_interval());
    let timeout = Timespec {
        tv_sec: time.as_secs() as i64,
        tv_nsec: time.subsec_nanos().into(),
    };
    // Whatever it returns, the caller reads the word again.
    let _ = futex::wait(word, Flags::empty(), value, Some(&timeout));
    exit_if_failed();
}

/// Sleeps while the word has this value, and may return early.
pub fn sleep_on(word: &AtomicU32, value: u32) {
    sleep(word, value, Duration::MAX);
}

/// Wakes one sleeper; whether there was one.
pub fn wake_one(word: &AtomicU32) -> bool {
    futex::wake(word, Flags::empty(), 1).is_ok_and(|woken| woken > 0)
}

/// Wakes all sleepers.
pub fn wake_all(word: &AtomicU32) {
    let _ = futex::wake(word, Flags::empty(), i32::MAX as u32);
}
