//! Tallies: merged, told in intervals, and sent from process to process.

use super::*;

#[test]
fn merging_loses_nothing() {
    let mut first = Tally::new(2, 1);
    first.end(0, 0, 1_000, Ending::Ok);
    first.end(1, 0, 3_000, Ending::Error("ERR".to_owned()));
    (first.begin_ns, first.end_ns) = (5, 20);
    let mut second = Tally::new(2, 2);
    second.end(0, 1, 2_000, Ending::Refused);
    (second.begin_ns, second.end_ns) = (6, 30);
    let all = Tally::merged(vec![first, second]);
    assert_eq!(all.wall_ns(), 25);
    assert_eq!(all.sessions.len(), 3);
    assert_eq!(all.sessions[2].transactions, 1);
    let total = all.total();
    assert_eq!((total.ok, total.refused, total.failed()), (1, 1, 1));
    assert_eq!((total.answered(), total.ended()), (3, 3));
    assert_eq!(total.latency_ns.max(), 3_001);
}

#[test]
fn a_tally_goes_from_process_to_process() {
    let mut tally = Tally::new(2, 1);
    tally.end(1, 0, 1_234_567, Ending::Error("BUSY".to_owned()));
    tally.connection_ns.record(777).unwrap();
    let text = serde_json::to_string(&tally).unwrap();
    let back: Tally = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_string(&back).unwrap(), text);
    assert_eq!(
        back.total().latency_ns.max(),
        tally.total().latency_ns.max()
    );
}

#[test]
fn what_was_told_in_intervals_is_not_lost() {
    let mut tally = Tally::new(1, 1);
    tally.end(0, 0, 1_000, Ending::Ok);
    let mut told = tally.take_interval(0);
    tally.end(0, 0, 2_000, Ending::Refused);
    told.add(&tally.take_interval(1));
    tally.end(0, 0, 3_000, Ending::Ok);
    assert_eq!(tally.total().answered(), 1);
    tally.add_interval(&told);
    assert_eq!((tally.total().ok, tally.total().refused), (2, 1));
    assert_eq!(tally.total().latency_ns.len(), 3);
}

#[test]
fn what_is_beyond_the_scale_is_counted_at_its_end() {
    let mut tally = Tally::new(1, 1);
    tally.end(0, 0, u64::MAX / 2, Ending::Ok);
    tally.end(0, 0, 0, Ending::Ok);
    assert_eq!(tally.kinds[0].latency_ns.len(), 2);
}
