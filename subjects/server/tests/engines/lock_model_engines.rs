//! The lock table against its model, by engines that are processes and by engines that are threads,
//! some of which die.

use concurve_server::lock_table::latched::Latching;
use proptest::prelude::*;

use crate::lock_model::{Beside, step};
use crate::schedule::{check, in_processes, in_threads, schedules};

const ENGINES: u32 = 3;
const CASES: u32 = 200;

pub fn engines_answer_as_the_model() {
    let latching = prop_oneof![Just(Latching::Global), Just(Latching::Record)];
    let case = (latching, any::<bool>(), schedules(ENGINES, 1..120, step()));
    // Before threads: a process that forks must have one thread, and a thread that was joined may
    // exist a little longer.
    let by_processes = check(CASES, &case, |(latching, blocks, history)| {
        in_processes(ENGINES, || Beside::new(*latching, *blocks), history)
    });
    let by_threads = check(CASES, &case, |(latching, blocks, history)| {
        in_threads(ENGINES, Beside::new(*latching, *blocks), history)
    });
    by_processes
        .and(by_threads)
        .unwrap_or_else(|why| panic!("{why}"));
}
