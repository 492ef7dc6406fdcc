//! The part of each load in a search by several of them: its own figures, and whether it is slower than the
//! others.

use std::collections::BTreeMap;

use concurve_reporter::Reporter;
use serde_json::{Value, json};
use statrs::distribution::{ContinuousCDF, StudentsT};

use super::search::Window;
use crate::counts::window::WindowCounts;
use crate::error::Error;
use crate::figures::lost_sessions;
use crate::plan::Plan;
use crate::together::{Followed, Share};
use crate::units::{count, percent};

/// A load is slower if its share of bad requests is so many times that of the others, and chance would make
/// it larger by as much with this probability at most.
const SLOWER_TIMES: f64 = 1.25;
const SLOWER_CHANCE: f64 = 0.001;
/// The test needs so many windows with bad requests, and so many bad ones due to each side.
const WINDOWS_MIN: usize = 10;
const BAD_MIN: f64 = 30.0;
/// Windows in which a larger share was bad compare no loads: the server was overloaded for all of them.
const OVERLOADED: f64 = 0.5;

/// A load in a search.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadPart {
    pub name: String,
    pub sessions: u64,
    /// What it sent in each window.
    pub windows: Vec<Window>,
    pub busiest_share: f64,
    /// Its sessions that lost their connection, by reason.
    pub lost: BTreeMap<String, u64>,
}

impl LoadPart {
    pub fn new(name: String, sessions: u64) -> Self {
        Self {
            name,
            sessions,
            windows: Vec::new(),
            busiest_share: 0.0,
            lost: BTreeMap::new(),
        }
    }

    /// Adds what it counted in a window.
    pub fn add(&mut self, window: Window, counts: &WindowCounts) {
        self.windows.push(window);
        self.busiest_share = self.busiest_share.max(counts.busiest_share);
    }

    pub fn sessions_lost(&self) -> u64 {
        self.lost.values().sum()
    }

    fn requests(&self) -> u64 {
        self.windows.iter().map(|it| it.requests).sum()
    }

    /// Bad requests by objective.
    fn bad(&self) -> Vec<u64> {
        let objectives = self.windows.first().map_or(0, |it| it.bad.len());
        let bad = |it: usize| self.windows.iter().map(|window| window.bad[it]).sum();
        (0..objectives).map(bad).collect()
    }
}

/// The load with the busiest client thread, of several.
pub fn busiest(loads: &[LoadPart]) -> Option<&str> {
    let busiest = |a: &&LoadPart, b: &&LoadPart| a.busiest_share.total_cmp(&b.busiest_share);
    loads.iter().max_by(busiest).map(|it| it.name.as_str())
}

/// What each load sent, and how much of that was bad in windows without overload.
pub fn shares(loads: &[LoadPart]) -> Vec<Share> {
    let Some(objective) = limiting(loads) else {
        let none = |it: &LoadPart| Share {
            windows: it.windows.len() as u64,
            requests: it.requests(),
            bad_share: None,
        };
        return loads.iter().map(none).collect();
    };
    let compared = compared(loads, objective);
    let share = |it: &LoadPart| {
        let (requests, bad) = compared.iter().fold((0, 0), |sum, window| {
            let window = &it.windows[*window];
            (sum.0 + window.requests, sum.1 + window.bad[objective])
        });
        Share {
            windows: it.windows.len() as u64,
            requests: it.requests(),
            bad_share: (requests > 0).then(|| bad as f64 / requests as f64),
        }
    };
    loads.iter().map(share).collect()
}

/// The objective by which the most requests were bad, over all loads.
fn limiting(loads: &[LoadPart]) -> Option<usize> {
    let objectives = loads.first()?.bad().len();
    let bad = |it: usize| loads.iter().map(|load| load.bad()[it]).sum::<u64>();
    (0..objectives).max_by_key(|it| bad(*it))
}

/// Requests and bad ones of all loads in a window.
fn of_all(loads: &[LoadPart], window: usize, objective: usize) -> (f64, f64) {
    let windows = loads.iter().map(|it| &it.windows[window]);
    windows.fold((0.0, 0.0), |sum, it| {
        (sum.0 + it.requests as f64, sum.1 + it.bad[objective] as f64)
    })
}

/// The windows in which loads can be compared.
fn compared(loads: &[LoadPart], objective: usize) -> Vec<usize> {
    let windows = loads.first().map_or(0, |it| it.windows.len());
    let is_calm = |window: &usize| {
        let (requests, bad) = of_all(loads, *window, objective);
        requests > 0.0 && bad <= OVERLOADED * requests
    };
    (0..windows).filter(is_calm).collect()
}

fn said(share: &Share) -> String {
    let requests = count(share.requests as f64);
    match share.bad_share {
        Some(bad) => format!(
            "{requests} requests, {} bad in windows without overload",
            percent(bad)
        ),
        None => format!("{requests} requests"),
    }
}

/// A line for each load.
pub fn text(loads: &[LoadPart]) -> String {
    let line = |it: (&LoadPart, Share)| {
        format!(
            "{} ({} sessions): {}\n",
            it.0.name,
            it.0.sessions,
            said(&it.1)
        )
    };
    loads.iter().zip(shares(loads)).map(line).collect()
}

pub fn json(loads: &[LoadPart]) -> Value {
    let load = |it: (&LoadPart, Share)| {
        json!({
            "name": it.0.name,
            "sessions": it.0.sessions,
            "requests": it.1.requests,
            "bad": it.0.bad(),
            "bad_share": it.1.bad_share,
            "sessions_lost": it.0.sessions_lost(),
            "client_threads_busy_share_max": it.0.busiest_share,
        })
    };
    loads.iter().zip(shares(loads)).map(load).collect()
}

/// A warning for each load whose requests were bad more often than those of the others, in the same windows.
pub fn slower(loads: &[LoadPart]) -> Vec<String> {
    let Some(objective) = limiting(loads) else {
        return Vec::new();
    };
    let compared = compared(loads, objective);
    let warning = |load: &LoadPart| {
        let found = Excess::of(load, loads, &compared, objective)?;
        (found.chance * loads.len() as f64 <= SLOWER_CHANCE
            && found.own >= SLOWER_TIMES * found.others)
            .then(|| {
                format!(
                    "{}: {} of its requests were bad, and {} of those of the other loads in the same windows: it, its host or its way to the server is slower",
                    load.name,
                    percent(found.own),
                    percent(found.others)
                )
            })
    };
    loads.iter().filter_map(warning).collect()
}

/// The bad requests of a load beyond its share of all, by its requests.
struct Excess {
    /// The probability of as large a mean excess, if it is as fast as the others.
    chance: f64,
    /// Shares of bad requests: its own, and that of the others.
    own: f64,
    others: f64,
}

impl Excess {
    /// The t test of the excess in each window against 0: it holds however bursts cluster within windows.
    /// `None` if there are too few windows, or bad requests, to tell. The least number matters where loads are
    /// unequal: the small one has no bad request in most windows, so the excess of the large one is no even
    /// coin.
    fn of(
        load: &LoadPart,
        loads: &[LoadPart],
        compared: &[usize],
        objective: usize,
    ) -> Option<Self> {
        let (mut excesses, mut requests, mut bad) = (Vec::new(), [0.0; 2], [0.0; 2]);
        let mut due = [0.0; 2];
        for window in compared {
            let own = &load.windows[*window];
            let (all_requests, all_bad) = of_all(loads, *window, objective);
            let (own_requests, own_bad) = (own.requests as f64, own.bad[objective] as f64);
            let expected = own_requests * all_bad / all_requests;
            due = [due[0] + expected, due[1] + all_bad - expected];
            requests = [
                requests[0] + own_requests,
                requests[1] + all_requests - own_requests,
            ];
            bad = [bad[0] + own_bad, bad[1] + all_bad - own_bad];
            if all_bad > 0.0 {
                excesses.push(own_bad - expected);
            }
        }
        if excesses.len() < WINDOWS_MIN || due.iter().any(|it| *it < BAD_MIN) {
            return None;
        }
        let n = excesses.len() as f64;
        let mean = excesses.iter().sum::<f64>() / n;
        let variance = excesses.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let even = StudentsT::new(0.0, 1.0, n - 1.0).expect("there are several windows");
        Some(Self {
            chance: match variance > 0.0 {
                true => even.sf(mean / (variance / n).sqrt()),
                false if mean > 0.0 => 0.0,
                false => 1.0,
            },
            own: bad[0] / requests[0],
            others: bad[1] / requests[1],
        })
    }
}

/// What a load has to say that followed another one.
pub fn part_text(plan: &Plan, followed: &Followed) -> String {
    let mut text = format!(
        "{}: followed the search of the load at {}, which has the answer: {} windows, {}\n",
        plan.target_name(),
        followed.leader,
        followed.share.windows,
        said(&followed.share)
    );
    if let Some(warning) = lost_sessions(plan.sessions, &followed.lost) {
        text.push_str(&format!("warning: {warning}\n"));
    }
    text
}

pub fn part_json(plan: &Plan, followed: &Followed) -> Value {
    json!({
        "server": plan.target_name(),
        "sessions": plan.sessions,
        "outcome": FOLLOWED,
        "leader": followed.leader,
        "windows": followed.share.windows,
        "requests": followed.share.requests,
        "bad_share": followed.share.bad_share,
        "client_threads_busy_share_max": followed.busiest_share,
        "sessions_lost": followed.lost.values().sum::<u64>(),
    })
}

/// The outcome of a load that followed another one.
const FOLLOWED: &str = "followed";

/// Reports the part of a load that followed another one.
pub fn report_part(followed: &Followed, reporter: &Reporter) -> Result<(), Error> {
    let lost = followed.lost.values().sum::<u64>();
    report_share(&followed.share, lost, followed.busiest_share, reporter)?;
    reporter.fact("slo_outcome", json!(FOLLOWED))?;
    Ok(())
}

/// Reports the part of a load in a search by several.
pub fn report_share(
    share: &Share,
    sessions_lost: u64,
    busiest_share: f64,
    reporter: &Reporter,
) -> Result<(), Error> {
    reporter.indicator("slo_requests", share.requests as f64, None)?;
    if let Some(bad_share) = share.bad_share {
        reporter.indicator("slo_bad_share", bad_share, None)?;
    }
    reporter.indicator("sessions_lost", sessions_lost as f64, None)?;
    reporter.indicator("client_threads_busy_share_max", busiest_share, None)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    /// A load with these numbers of requests and bad ones in each window.
    fn load(name: &str, windows: &[(u64, u64)]) -> LoadPart {
        let window = |it: &(u64, u64)| Window {
            rate: 1.0,
            requests: it.0,
            bad: vec![it.1, 0],
        };
        LoadPart {
            windows: windows.iter().map(window).collect(),
            ..LoadPart::new(name.to_owned(), 10)
        }
    }

    /// Loads with these shares of the requests, each so many times as slow as it should be: bad requests come
    /// in bursts of geometric lengths, and some windows are overloaded.
    fn searched(seed: u64, shares: &[f64], times: &[f64], overloaded: u64) -> Vec<LoadPart> {
        let mut random = SmallRng::seed_from_u64(seed);
        let mut windows = vec![Vec::new(); shares.len()];
        for number in 0..38 {
            let requests: Vec<u64> = shares.iter().map(|it| (4000.0 * it) as u64).collect();
            let mut bad = vec![0; shares.len()];
            for _ in 0..random.random_range(0..8) {
                while random.random_bool(0.9) {
                    let mut place = random.random::<f64>();
                    let total: f64 = shares.iter().zip(times).map(|it| it.0 * it.1).sum();
                    for (load, (share, slow)) in shares.iter().zip(times).enumerate() {
                        place -= share * slow / total;
                        if place < 0.0 || load + 1 == shares.len() {
                            bad[load] = (bad[load] + 1).min(requests[load]);
                            break;
                        }
                    }
                }
            }
            for (load, windows) in windows.iter_mut().enumerate() {
                let all_bad = number < overloaded;
                windows.push((
                    requests[load],
                    if all_bad { requests[load] } else { bad[load] },
                ));
            }
        }
        let named = windows.iter().enumerate();
        named
            .map(|it| load(&format!("load-{}", it.0), it.1))
            .collect()
    }

    #[test]
    fn loads_that_are_alike_are_hardly_ever_named() {
        for shares in [
            vec![0.5, 0.5],
            vec![0.75, 0.25],
            vec![0.98, 0.02],
            vec![0.25; 4],
        ] {
            let times = vec![1.0; shares.len()];
            let of = |seed| slower(&searched(seed, &shares, &times, seed % 4)).len();
            let named: usize = (0..1000).map(of).sum();
            assert!(named <= 3, "{shares:?}: {named} of 1000");
        }
    }

    #[test]
    fn a_load_that_is_twice_as_slow_is_named_whatever_else_is_overloaded() {
        for overloaded in [0, 1, 13] {
            let of = |seed| {
                slower(&searched(
                    seed,
                    &[0.5, 0.25, 0.25],
                    &[1.0, 1.0, 2.0],
                    overloaded,
                ))
            };
            let said: Vec<_> = (0..100).map(of).collect();
            let right = said
                .iter()
                .filter(|it| it.len() == 1 && it[0].starts_with("load-2:"));
            assert!(right.count() >= 70, "{overloaded}: {said:?}");
        }
    }

    #[test]
    fn too_few_requests_name_nobody() {
        assert!(slower(&[load("a", &[(1000, 30); 5]), load("b", &[(1000, 10); 5])]).is_empty());
        assert!(slower(&[load("a", &[]), load("b", &[])]).is_empty());
        assert!(slower(&[load("a", &[(1000, 0); 20]), load("b", &[(1000, 0); 20])]).is_empty());
        // The small one has one bad request in all: who has the rest says nothing.
        let mut small = [(7, 0); 40];
        small[7].1 = 1;
        assert!(slower(&[load("a", &[(1000, 24); 40]), load("b", &small)]).is_empty());
        assert!(slower(&[]).is_empty());
    }

    #[test]
    fn each_load_has_its_figures_without_what_was_overloaded() {
        let loads = [
            load("a", &[(1000, 10), (1000, 20), (1000, 1000)]),
            load("b", &[(1000, 0), (1000, 0), (1000, 1000)]),
        ];
        let said = text(&loads);
        assert!(
            said.contains("a (10 sessions): 3,000 requests, 1.5 % bad"),
            "{said}"
        );
        assert_eq!(json(&loads)[0]["bad"], json!([1030, 0]));
        assert_eq!(shares(&loads)[1].bad_share, Some(0.0));
        let silent = LoadPart::new("c".to_owned(), 1);
        assert!(text(&[silent]).contains("0 requests"));
    }
}
