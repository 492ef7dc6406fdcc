//! Every pixel once, in shares that are as equal as can be.

use proptest::prelude::*;

use super::*;
use crate::cut::Grain;
use crate::location::Location;
use crate::view::View;

const SYNCS: [Sync; 4] = [Sync::None, Sync::Method, Sync::Object, Sync::Cas];

fn handout(width: u32, height: u32, grain: Grain, sync: Sync, workers: usize) -> Handout {
    let view = View::new(&Location::built_in(), width, height, 10);
    Handout::new(Cut::new(view, grain), sync, workers)
}

fn grains() -> impl Strategy<Value = Grain> {
    prop_oneof![
        Just(Grain::Pixel),
        Just(Grain::Line),
        (1..20_u32).prop_map(Grain::Tile)
    ]
}

proptest! {
    #[test]
    fn every_pixel_is_handed_out_exactly_once(
        width in 1..40_u32, height in 1..40_u32, grain in grains(), workers in 1..30_usize,
    ) {
        for sync in SYNCS {
            let handout = handout(width, height, grain, sync, workers);
            let mut seen = vec![0; (width * height) as usize];
            let mut workers: Vec<_> = (0..workers).map(|w| handout.points(w)).collect();
            // Each in turn, one pixel at a time, until nobody gets any.
            while workers.iter_mut().filter_map(Iterator::next).fold(false, |_, point| {
                seen[point.index] += 1;
                true
            }) {}
            prop_assert!(seen.iter().all(|times| *times == 1));
            let pixels: u64 = workers.iter().map(Points::pixels).sum();
            prop_assert_eq!(pixels, u64::from(width * height));
            prop_assert!(handout.pixels_booked().is_none_or(|booked| booked == pixels));
        }
    }
}

fn shares(grain: Grain, workers: usize) -> Vec<Vec<usize>> {
    let handout = handout(1016, 718, grain, Sync::None, workers);
    (0..workers)
        .map(|worker| handout.points(worker).map(|point| point.index).collect())
        .collect()
}

#[test]
fn static_shares_of_lines_are_dealt_round_robin() {
    for workers in [2, 3, 8, 32, 128, 512] {
        for (worker, share) in shares(Grain::Line, workers).iter().enumerate() {
            let lines: Vec<usize> = share.iter().step_by(1016).map(|i| i / 1016).collect();
            let expected: Vec<usize> = (worker..718).step_by(workers).collect();
            assert_eq!(lines, expected);
        }
    }
}

#[test]
fn static_shares_never_differ_by_more_than_one_unit() {
    for workers in [2, 3, 8, 32, 128, 512] {
        let sizes: Vec<usize> = shares(Grain::Pixel, workers).iter().map(Vec::len).collect();
        assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1);
    }
}

#[test]
fn static_shares_take_no_whole_columns() {
    // 32 tiles in a row and 8 | 1016: plain round robin would deal out columns.
    for (grain, workers) in [
        (Grain::Tile(32), 32),
        (Grain::Tile(32), 8),
        (Grain::Pixel, 8),
    ] {
        for share in shares(grain, workers) {
            let columns: std::collections::BTreeSet<usize> =
                share.iter().map(|index| index % 1016).collect();
            assert!(columns.len() > 1016 / 2, "{grain:?} {workers}");
        }
    }
}

#[test]
fn more_workers_than_units_leave_some_idle() {
    let shares = shares(Grain::Tile(2000), 3);
    assert_eq!(shares[0].len(), 1016 * 718);
    assert!(shares[1].is_empty() && shares[2].is_empty());
}
