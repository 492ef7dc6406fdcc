//! The lock table against its model, by one thread.

use concurve_server::lock_table::latched::Latching;
use proptest::prelude::*;

use crate::lock_model::{Beside, step};
use crate::schedule::{in_one_thread, schedules};

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn one_latch_answers_as_the_model(
        blocks in any::<bool>(),
        history in schedules(1, 1..120, step()),
    ) {
        in_one_thread(Beside::new(Latching::Global, blocks), &history);
    }

    #[test]
    fn many_latches_answer_as_the_model(
        blocks in any::<bool>(),
        history in schedules(1, 1..120, step()),
    ) {
        in_one_thread(Beside::new(Latching::Record, blocks), &history);
    }
}
