//! Compares the engine with its model, with sessions in one thread.

use concurve_records::Engine;
use proptest::prelude::*;

use crate::common::LATCHINGS;
use crate::record_model::{Case, SESSIONS, step};
use crate::schedule::{in_one_thread, schedules};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn sessions_see_what_the_model_says(
        history in schedules(SESSIONS as u32, 1..250, step()),
        latching in proptest::sample::select(&LATCHINGS),
        restarts: bool,
    ) {
        let case = Case::new(latching, restarts);
        in_one_thread(case.open(Engine::open), &history);
    }
}
