//! Looking at a taken latch again and again, before sleeping.

use std::hint::spin_loop;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use crate::board::leave_if_failed;
use crate::class::{Class, Spin};
use crate::seat::{Tally, add};

/// Looks after which the caller, too, sees whether waiting is in vain.
const ROUND: u32 = 1 << 14;

/// Looks at a word until `is_over`, as often as the class allows; the last value seen. To be called
/// again if the class sleeps never.
///
/// `others_sleep`: with somebody asleep already the latch is not a short one, and looking ends.
pub fn look(
    word: &AtomicU32,
    class: Class,
    tally: &Tally,
    is_over: impl Fn(u32) -> bool,
    others_sleep: impl Fn(u32) -> bool,
) -> u32 {
    let spin = class.spin();
    let mut looks = 0;
    let value = loop {
        let value = word.load(Relaxed);
        if is_over(value) {
            break value;
        }
        match spin {
            Spin::Times(times) if looks >= times || others_sleep(value) => break value,
            Spin::Only if looks == ROUND => {
                leave_if_failed();
                break value;
            }
            _ => {}
        }
        spin_loop();
        looks += 1;
    };
    add(&tally.spins, u64::from(looks));
    value
}

/// What to say to who wants a latch whose holder panicked.
pub const BROKEN: &str = "a thread panicked while it held this latch";
