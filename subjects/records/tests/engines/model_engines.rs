//! Compares the engine with its model, with sessions in several processes or threads, some of which
//! die.

use concurve_records::Engine;
use proptest::prelude::*;

use crate::common::LATCHINGS;
use crate::record_model::{Case, SESSIONS, step};
use crate::schedule::{check, in_processes, in_threads, schedules};

const CASES: u32 = 40;
const ENGINES: u32 = SESSIONS as u32;

pub fn sessions_see_what_the_model_says() {
    let case = (
        proptest::sample::select(&LATCHINGS),
        any::<bool>(),
        schedules(ENGINES, 1..250, step()),
    );
    // Before threads: a joined thread may still exist for a short time, and a process with several
    // threads must not fork.
    let by_processes = check(CASES, &case, |(latching, restarts, schedule)| {
        let case = Case::new(*latching, *restarts);
        in_processes(ENGINES, || case.open(Engine::open_shared), schedule)
    });
    let by_threads = check(CASES, &case, |(latching, restarts, schedule)| {
        let case = Case::new(*latching, *restarts);
        in_threads(ENGINES, case.open(Engine::open), schedule)
    });
    by_processes
        .and(by_threads)
        .unwrap_or_else(|why| panic!("{why}"));
}
