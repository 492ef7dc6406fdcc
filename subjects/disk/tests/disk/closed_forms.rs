//! The simulator against what can be computed by hand.

use concurve_disk::Simulation;
use concurve_disk::disk::Model;
use concurve_disk::request::{Direction, Priority};
use concurve_disk::scheduler::kind::Kind;
use concurve_disk::workload::synthetic::{Pace, Pattern, Stream};

use crate::common::{SECTORS, one_disk, plain_disk};

/// ms: overhead, settling and the way over uniformly random cylinders, half a revolution, and 8
/// of 700 sectors. The arm stays where it is in 1 of 20,000 cases, which does not show.
const MEAN_SERVICE: f64 = 0.1 + 3.5 + 2.0 + 4.0 * 8.0 / 700.0;

fn relative(value: f64, expected: f64) -> f64 {
    (value / expected - 1.0).abs()
}

fn mean_read_ms(disk: Model, stream: Stream) -> f64 {
    let simulation = Simulation::new(&one_disk(disk, Kind::Noop), vec![stream.process()]);
    simulation.run().mean_read() / 1e6
}

#[test]
fn the_mean_service_time_of_random_reads_is_that_of_the_closed_form() {
    let stream = Stream::random_reads((0, SECTORS), 200_000, 1, 1);
    let mean = mean_read_ms(plain_disk(), stream);
    assert!(
        relative(mean, MEAN_SERVICE) < 0.02,
        "{mean} for {MEAN_SERVICE}"
    );
}

/// The second moment of the service time: its parts vary independently. With x uniform distance
/// of two random cylinders, E x = 1/3, so var √x = 1/3 − (8/15)²; a revolution gives 4²/12.
fn second_moment() -> f64 {
    let seek = 6.0f64.powi(2) * (1.0 / 3.0 - (8.0f64 / 15.0).powi(2));
    MEAN_SERVICE.powi(2) + seek + 16.0 / 12.0
}

#[test]
fn the_mean_wait_is_that_of_pollaczek_and_khinchine() {
    for load in [0.3, 0.6, 0.8] {
        let per_ms = load / MEAN_SERVICE;
        let wait = per_ms * second_moment() / (2.0 * (1.0 - load));
        let stream = Stream {
            pace: Pace::Poisson {
                per_second: per_ms * 1000.0,
            },
            ..Stream::random_reads((0, SECTORS), 2_000_000, 1, 7)
        };
        let mean = mean_read_ms(plain_disk(), stream);
        let expected = MEAN_SERVICE + wait;
        assert!(
            relative(mean, expected) < 0.02,
            "load {load}: {mean} for {expected}"
        );
    }
}

/// A sequential reader with the disk's read-ahead gets what passes under the heads: 64 sectors
/// in 4 ms · 64/700, plus the changes of tracks and cylinders.
#[test]
fn a_sequential_reader_gets_the_speed_of_the_platters() {
    let disk = Model {
        read_ahead: 2048,
        ..plain_disk()
    };
    let stream = Stream {
        pattern: Pattern::Sequential,
        sectors: 64,
        ..Stream::random_reads((0, SECTORS), 20_000, 2, 1)
    };
    let account = Simulation::new(&one_disk(disk, Kind::Noop), vec![stream.process()]).run();
    let tracks = 20_000.0 * 64.0 / 700.0;
    let expected = tracks * 4.0 + tracks * (0.75 * 0.3 + 0.25 * 0.5);
    let taken = account.end as f64 / 1e6;
    assert!(relative(taken, expected) < 0.02, "{taken} for {expected}");
}

/// Without read-ahead, and with one command at a time, the next sector has just passed when the
/// command comes: a revolution is lost each time.
#[test]
fn a_sequential_writer_without_a_cache_loses_a_revolution_a_request() {
    let stream = Stream {
        pattern: Pattern::Sequential,
        direction: Direction::Write,
        sectors: 8,
        ..Stream::random_reads((0, SECTORS), 5_000, 1, 1)
    };
    let account =
        Simulation::new(&one_disk(plain_disk(), Kind::Noop), vec![stream.process()]).run();
    let each = account.end as f64 / 1e6 / 5_000.0;
    assert!(relative(each, 4.0 + 4.0 * 8.0 / 700.0) < 0.02, "{each}");
}

#[test]
fn the_same_seed_gives_the_same_account() {
    let run = || {
        let streams = (0..4).map(|seed| {
            Stream {
                priority: Priority::NORMAL,
                ..Stream::random_reads((0, SECTORS), 2_000, 3, seed)
            }
            .process()
        });
        Simulation::new(&one_disk(plain_disk(), Kind::Cfq), streams.collect()).run()
    };
    let (one, other) = (run(), run());
    assert_eq!((one.end, one.shares), (other.end, other.shares));
}

/// Two processes that read one block after the other, with a pause between: deadline seeks to
/// and fro for each block, anticipation and time slices do not (Iyer and Druschel 2001).
#[test]
fn waiting_for_the_next_read_saves_the_seeks() {
    let seconds = |scheduler| {
        let reader = |number: u64| {
            Stream {
                pattern: Pattern::Sequential,
                pace: Pace::Closed {
                    depth: 1,
                    think: 500_000,
                },
                sectors: 128,
                ..Stream::random_reads((number * SECTORS / 2, SECTORS / 2), 1_000, 1, 1)
            }
            .process()
        };
        let disk = Model {
            read_ahead: 1024,
            ..plain_disk()
        };
        let machine = one_disk(disk, scheduler);
        Simulation::new(&machine, vec![reader(0), reader(1)])
            .run()
            .end as f64
    };
    let deadline = seconds(Kind::Deadline);
    for scheduler in [Kind::Anticipatory, Kind::Cfq, Kind::Bfq] {
        let factor = deadline / seconds(scheduler);
        assert!(factor > 4.0, "{scheduler:?}: {factor}");
    }
}
