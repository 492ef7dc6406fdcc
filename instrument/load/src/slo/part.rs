//! The part of each load in a search by several of them: its own figures, and whether it is slower than the
//! others.

use concurve_reporter::Reporter;
use serde_json::{Value, json};
use statrs::distribution::{Binomial, DiscreteCDF};

use crate::error::Error;
use crate::figures::lost_sessions;
use crate::plan::Plan;
use crate::together::{Followed, Part};
use crate::units::{count, percent};

/// A load is slower if the share of its bad requests is so many times that of the others, and the larger one
/// so often that chance alone would do it with this probability at most.
const SLOWER_TIMES: f64 = 1.5;
const SLOWER_CHANCE: f64 = 0.001;

/// A load in a search.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadPart {
    pub name: String,
    pub sessions: u64,
    /// What it sent in each window.
    pub windows: Vec<Part>,
    pub busiest_share: f64,
}

impl LoadPart {
    pub fn new(name: String, sessions: u64) -> Self {
        Self {
            name,
            sessions,
            windows: Vec::new(),
            busiest_share: 0.0,
        }
    }

    /// All windows together.
    pub fn all(&self) -> Part {
        let mut all = Part::default();
        self.windows.iter().for_each(|it| all.add(it));
        all
    }

    fn text(&self) -> String {
        format!(
            "{} ({} sessions): {}",
            self.name,
            self.sessions,
            said(&self.all())
        )
    }
}

fn said(part: &Part) -> String {
    match part.bad_share() {
        Some(share) => format!(
            "{} requests, {} bad",
            count(part.requests as f64),
            percent(share)
        ),
        None => "no request".to_owned(),
    }
}

/// A line for each load.
pub fn text(loads: &[LoadPart]) -> String {
    loads.iter().map(|it| it.text() + "\n").collect()
}

pub fn json(loads: &[LoadPart]) -> Value {
    let load = |it: &LoadPart| {
        let all = it.all();
        json!({
            "name": it.name,
            "sessions": it.sessions,
            "requests": all.requests,
            "bad": all.bad,
            "client_threads_busy_share_max": it.busiest_share,
        })
    };
    loads.iter().map(load).collect()
}

/// A warning for each load whose requests were bad more often than those of the others, in the same windows.
pub fn slower(loads: &[LoadPart]) -> Vec<String> {
    let warning = |(index, load): (usize, &LoadPart)| {
        let others = others(loads, index);
        let mut all_others = Part::default();
        others.iter().for_each(|it| all_others.add(it));
        let (own, other) = (load.all().bad_share()?, all_others.bad_share()?);
        let chance = chance_of_more(&load.windows, &others) * loads.len() as f64;
        (own >= SLOWER_TIMES * other && chance <= SLOWER_CHANCE).then(|| {
            format!(
                "{}: {} of its requests were bad, and {} of those of the other loads at the same rates: it, its host or its way to the server is slower",
                load.name,
                percent(own),
                percent(other)
            )
        })
    };
    loads.iter().enumerate().filter_map(warning).collect()
}

/// What all loads but one sent in each window.
fn others(loads: &[LoadPart], but: usize) -> Vec<Part> {
    let windows = loads.first().map_or(0, |it| it.windows.len());
    let sum = |window: usize| {
        let mut sum = Part::default();
        let others = loads.iter().enumerate().filter(|it| it.0 != but);
        others.for_each(|it| sum.add(&it.1.windows[window]));
        sum
    };
    (0..windows).map(sum).collect()
}

/// The probability that a load has the larger share of bad requests in as many windows as it had, if it is
/// as fast as the others (sign test; windows without a difference do not count).
fn chance_of_more(own: &[Part], others: &[Part]) -> f64 {
    let shares = own.iter().zip(others);
    let signs = shares.filter_map(|it| {
        let (own, other) = (it.0.bad_share()?, it.1.bad_share()?);
        (own != other).then_some(own > other)
    });
    let signs = Vec::from_iter(signs);
    let more = signs.iter().filter(|it| **it).count() as u64;
    let even = Binomial::new(0.5, signs.len() as u64).expect("a half is a probability");
    match more {
        0 => 1.0,
        _ => even.sf(more - 1),
    }
}

/// What a load has to say that followed another one.
pub fn part_text(plan: &Plan, followed: &Followed) -> String {
    let mut text = format!(
        "{}: followed the search of the load at {}, which has the answer: {} windows, {}\n",
        plan.target_name(),
        followed.leader,
        followed.windows,
        said(&followed.part)
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
        "windows": followed.windows,
        "requests": followed.part.requests,
        "bad": followed.part.bad,
        "client_threads_busy_share_max": followed.busiest_share,
        "sessions_lost": followed.lost.values().sum::<u64>(),
    })
}

/// The outcome of a load that followed another one.
const FOLLOWED: &str = "followed";

/// Reports the part of a load that followed another one.
pub fn report_part(followed: &Followed, reporter: &Reporter) -> Result<(), Error> {
    report_requests(&followed.part, reporter)?;
    reporter.indicator(
        "sessions_lost",
        followed.lost.values().sum::<u64>() as f64,
        None,
    )?;
    reporter.indicator(
        "client_threads_busy_share_max",
        followed.busiest_share,
        None,
    )?;
    reporter.fact("slo_outcome", json!(FOLLOWED))?;
    Ok(())
}

/// Reports what a load sent in the windows of a search by several, and how much of that was bad.
pub fn report_requests(part: &Part, reporter: &Reporter) -> Result<(), Error> {
    reporter.indicator("slo_requests", part.requests as f64, None)?;
    if let Some(share) = part.bad_share() {
        reporter.indicator("slo_bad_share", share, None)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A load with these numbers of bad requests of 1000 in each window.
    fn load(name: &str, bad: &[u64]) -> LoadPart {
        let part = |bad: &u64| Part {
            requests: 1000,
            bad: vec![*bad, 0],
        };
        LoadPart {
            windows: bad.iter().map(part).collect(),
            ..LoadPart::new(name.to_owned(), 10)
        }
    }

    #[test]
    fn a_load_that_is_slower_is_named_with_its_share() {
        let slow = [30; 16];
        let loads = [load("a", &[10; 16]), load("b", &slow), load("c", &[12; 16])];
        let said = slower(&loads);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].starts_with("b: 3.0"), "{said:?}");
        assert!(said[0].contains("1.1"), "{said:?}");
    }

    #[test]
    fn loads_that_differ_by_chance_or_by_little_are_alike() {
        let by_chance = [40, 2, 1, 50, 0, 3, 60, 1, 2, 0, 80, 1, 1, 0, 2, 3];
        assert!(slower(&[load("a", &by_chance), load("b", &[5; 16])]).is_empty());
        assert!(slower(&[load("a", &[13; 40]), load("b", &[10; 40])]).is_empty());
        assert!(slower(&[load("a", &[30; 5]), load("b", &[10; 5])]).is_empty());
        assert!(slower(&[load("a", &[]), load("b", &[])]).is_empty());
        assert!(slower(&[load("a", &[0; 20]), load("b", &[0; 20])]).is_empty());
        assert!(slower(&[]).is_empty());
    }

    #[test]
    fn each_load_has_its_figures() {
        let loads = [load("a", &[10, 20]), load("b", &[0, 0])];
        let said = text(&loads);
        assert!(
            said.contains("a (10 sessions): 2,000 requests, 1.5"),
            "{said}"
        );
        assert_eq!(json(&loads)[0]["bad"], json!([30, 0]));
        let silent = LoadPart::new("c".to_owned(), 1);
        assert!(text(&[silent]).contains("no request"));
    }
}
