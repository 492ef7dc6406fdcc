//! The servers that judge the search, with the rates to be found. Frozen. The search was made with
//! `CASES` in view; `JUDGES` were frozen before its estimate was changed, and seen while its constants were chosen.

use super::simulated::{Model, Service, Speed};

/// A server, objectives, and the greatest rate that keeps them.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    pub name: &'static str,
    pub model: Model,
    /// Share of the requests that may be bad, and the limit on latency that so many exceed at
    /// `rate`: from thirty million requests, see `the_limits_are_those_of_the_rates`.
    pub objectives: &'static [(f64, f64)],
    pub rate: f64,
}

const MM1: Model = Model {
    servers: 1,
    batch: 1.0,
    service: Service::Exponential,
    speed: Speed::Steady,
    collection: None,
    sweep: None,
    congestion: 0.0,
    failing: 0.0,
};

const fn servers(servers: usize) -> Model {
    Model { servers, ..MM1 }
}

const fn service(service: Service) -> Model {
    Model { service, ..MM1 }
}

const fn speed(speed: Speed) -> Model {
    Model { speed, ..MM1 }
}

const fn case(
    name: &'static str,
    model: Model,
    objectives: &'static [(f64, f64)],
    rate: f64,
) -> Case {
    Case {
        name,
        model,
        objectives,
        rate,
    }
}

#[rustfmt::skip]
pub const CASES: &[Case] = &[
    case("M/M/1, p99", MM1, &[(0.01, 22.9728)], 0.8),
    case("M/M/1 at half load, p99", MM1, &[(0.01, 9.2113)], 0.5),
    case("M/M/1, p50", MM1, &[(0.5, 3.4645)], 0.8),
    case("M/M/1, p50 and p99", MM1, &[(0.5, 3.4645), (0.01, 22.9728)], 0.8),
    case("M/M/2, p99", servers(2), &[(0.01, 11.9155)], 1.6),
    case("pauses of 20 in 400, p99", speed(Speed::Pauses { gap: 400.0, length: 20.0 }), &[(0.01, 26.6645)], 0.6),
    case("pauses of 50 in 1000, p99", speed(Speed::Pauses { gap: 1000.0, length: 50.0 }), &[(0.01, 53.8116)], 0.6),
    case("pauses of 50 in 1000, p95", speed(Speed::Pauses { gap: 1000.0, length: 50.0 }), &[(0.05, 44.0236)], 0.7),
    case("stalls of 50 in each 1000, p99", speed(Speed::Stalls { period: 1000.0, length: 50.0 }), &[(0.01, 51.0613)], 0.6),
    case("on/off: 500 at full, 500 at .6 speed, p99", speed(Speed::Alternates { full: 500.0, slow: 500.0, speed: 0.6 }), &[(0.01, 35.6685)], 0.5),
    case("batches of 10, p99", Model { batch: 10.0, ..MM1 }, &[(0.01, 115.2143)], 0.6),
    case("5 % of requests 20 times as slow, p99", service(Service::SlowMinority { share: 0.05, factor: 20.0 }), &[(0.01, 70.9333)], 0.6),
    case("M/D/1, p99", service(Service::Constant), &[(0.01, 11.3545)], 0.8),
    case("M/M/4, p99", servers(4), &[(0.01, 8.5678)], 3.4),
    case("M/M/1, p99.9", MM1, &[(0.001, 23.0345)], 0.7),
    case("pauses of 20 in 400, p99 at .8", speed(Speed::Pauses { gap: 400.0, length: 20.0 }), &[(0.01, 51.5015)], 0.8),
    case("pauses of 50 in 1000, p50 and p99", speed(Speed::Pauses { gap: 1000.0, length: 50.0 }), &[(0.5, 2.9920), (0.01, 64.0175)], 0.7),
    case("M/M/4, pauses of 20 in 400, p99", Model { servers: 4, ..speed(Speed::Pauses { gap: 400.0, length: 20.0 }) }, &[(0.01, 24.6832)], 2.8),
    case("random pauses of 30 in 600, p99", speed(Speed::RandomPauses { gap: 600.0, length: 30.0 }), &[(0.01, 85.9196)], 0.6),
    case("rare pauses of 100 in 5000, p99", speed(Speed::Pauses { gap: 5000.0, length: 100.0 }), &[(0.01, 86.8048)], 0.6),
    case("stalls of 150 in each 6250 (two windows), p99", speed(Speed::Stalls { period: 6250.0, length: 150.0 }), &[(0.01, 129.9095)], 0.6),
    case("collection of 15 each 300 requests, p99", Model { collection: Some((300, 15.0)), ..MM1 }, &[(0.01, 23.3690)], 0.7),
    case("collection of 60 each 2000 requests, p95", Model { collection: Some((2000, 60.0)), ..MM1 }, &[(0.05, 24.3789)], 0.7),
    case("on/off: 4000 at full, 2000 at .7 speed, p99", speed(Speed::Alternates { full: 4000.0, slow: 2000.0, speed: 0.7 }), &[(0.01, 17.4284)], 0.5),
    case("on/off: 200 at full, 40 at .2 speed, p90", speed(Speed::Alternates { full: 200.0, slow: 40.0, speed: 0.2 }), &[(0.1, 47.1661)], 0.6),
    case("batches of 4, stalls of 20 in each 500, p99", Model { batch: 4.0, ..speed(Speed::Stalls { period: 500.0, length: 20.0 }) }, &[(0.01, 55.7985)], 0.6),
    case("lognormal service (sigma 1.5), p99", service(Service::Lognormal(1.5)), &[(0.01, 67.0099)], 0.5),
    case("1 % of requests 50 times as slow, p95", service(Service::SlowMinority { share: 0.01, factor: 50.0 }), &[(0.05, 99.2093)], 0.6),
    case("on/off: 300 at full, 60 at .3 speed, p95", speed(Speed::Alternates { full: 300.0, slow: 60.0, speed: 0.3 }), &[(0.05, 71.2633)], 0.6),
    case("batches of 20, p90", Model { batch: 20.0, ..MM1 }, &[(0.1, 115.7005)], 0.6),
    case("M/M/2, random pauses of 10 in 200, p99", Model { servers: 2, ..speed(Speed::RandomPauses { gap: 200.0, length: 10.0 }) }, &[(0.01, 36.2907)], 1.4),
];

/// Servers that judge the search. They were frozen before its estimate was changed; their results were
/// seen while its constants were chosen.
#[rustfmt::skip]
pub const JUDGES: &[Case] = &[
    case("sweeps each 500, .05 a request, p99", Model { sweep: Some((500.0, 0.05)), ..MM1 }, &[(0.01, 17.9070)], 0.6),
    case("sweeps each 2000, .02 a request, p95", Model { sweep: Some((2000.0, 0.02)), ..MM1 }, &[(0.05, 13.4389)], 0.7),
    case("speed of 1, .8 or .5 for 300, p99", speed(Speed::Levels { stay: 300.0, speeds: [1.0, 0.8, 0.5] }), &[(0.01, 32.3083)], 0.4),
    case("speed of 1, 1 or .3 for 50, p95", speed(Speed::Levels { stay: 50.0, speeds: [1.0, 1.0, 0.3] }), &[(0.05, 96.9992)], 0.5),
    case("Pareto service (2.5), p99", service(Service::Pareto(2.5)), &[(0.01, 13.5585)], 0.6),
    case("M/G/8, Pareto service (2.2), p95", Model { servers: 8, ..service(Service::Pareto(2.2)) }, &[(0.05, 2.5231)], 6.0),
    case("pauses of 20 (Pareto) in 1000, p99", speed(Speed::HeavyPauses { gap: 1000.0, length: 20.0 }), &[(0.01, 28.0001)], 0.6),
    case("pauses of 10 (Pareto) in 200, p95", speed(Speed::HeavyPauses { gap: 200.0, length: 10.0 }), &[(0.05, 18.4487)], 0.7),
    case("drift by .1 over 20000, p99", speed(Speed::Drifts { period: 20000.0, depth: 0.1 }), &[(0.01, 17.4638)], 0.7),
    case("drift by .3 over 5000, p95", speed(Speed::Drifts { period: 5000.0, depth: 0.3 }), &[(0.05, 13.9031)], 0.6),
    case("cold start from .5 until 10000, p99", speed(Speed::Warms { until: 10000.0, speed: 0.5 }), &[(0.01, 15.3920)], 0.7),
    case("1 % slower for each waiting, p99", Model { congestion: 0.01, ..MM1 }, &[(0.01, 25.1588)], 0.7),
    case("lognormal service (sigma 1), p99", service(Service::Lognormal(1.0)), &[(0.01, 18.9066)], 0.6),
    case("batches of 3, p95", Model { batch: 3.0, ..MM1 }, &[(0.05, 29.9702)], 0.7),
    case("very rare pauses of 200 in 20000, p99", speed(Speed::Pauses { gap: 20000.0, length: 200.0 }), &[(0.01, 124.8092)], 0.6),
];

/// Servers whose capacity changes once, in the middle of a search and late in it: no rate is the
/// greatest one of all their times, and the one at the end is what a user gets from then on.
pub const CHANGING: &[(&str, f64, f64)] = &[
    ("falls to .7 after 40 % of the time", 0.4, 0.7),
    ("falls to .5 after 75 % of the time", 0.75, 0.5),
    ("rises from 1 to 1.4 after half the time", 0.5, 1.4),
];
