//! A Mutex of parking_lot, taken in two functions.

use parking_lot::Mutex;

#[macro_use]
#[path = "../../rust/plant.rs"]
mod plant;
use plant::{at, compute};

static TOTAL: Mutex<u64> = Mutex::new(1);

#[inline(never)]
fn add_left(thread: usize) {
    let mut total = wait!(thread, 1, TOTAL.lock());  // add_left
    *total = compute(50_000 + *total % 40_000, *total);
}

#[inline(never)]
fn add_right(thread: usize) {
    let mut total = wait!(thread, 2, TOTAL.lock());  // add_right
    *total = compute(40_000 + *total % 30_000, *total);
}

fn turn(thread: usize, round: u64) {
    if round % 2 == 1 {
        add_left(thread);
    } else {
        add_right(thread);
    }
    compute(1000, round);
}

fn main() {
    plant::plant(turn);
}
