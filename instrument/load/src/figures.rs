//! Counts → figures. Pure.

use std::collections::BTreeMap;

use crate::plan::{Pace, Plan, Reach};
use crate::run::Counted;
use crate::tally::{KindTally, Tally};
use crate::workload::tpcb::dialect::Table;

/// A client thread that used more of a CPU than this limits what it measures.
const BUSY_SHARE_MAX: f64 = 0.85;
/// Little's law holds to this share, or the counts are not to be trusted.
pub const LITTLE_TOLERANCE: f64 = 0.05;

/// What a run says.
#[derive(Debug)]
pub struct Figures {
    pub wall_seconds: f64,
    pub all: Tally,
    /// Sessions that lost their connection.
    pub sessions_lost: u64,
    /// Latencies of each thread or process, if there are several.
    pub members: Vec<KindTally>,
    pub total: KindTally,
    pub rate_per_second: f64,
    /// CPU time of the client per answered transaction; none if nothing was answered.
    pub client_cpu_ns_per_operation: Option<f64>,
    /// Share of a CPU that the busiest client thread used.
    pub busiest_thread_share: f64,
    /// Transactions under way on the average: rate × mean latency (Little 1961).
    pub concurrency: f64,
    /// Jain's index of the transactions of each session: 1 if all did alike (Jain, Chiu, Hawe
    /// 1984); none if nothing was answered.
    pub fairness: Option<f64>,
    pub warnings: Vec<String>,
}

/// Percentiles that are shown, with their names.
pub const PERCENTILES: [(&str, f64); 5] = [
    ("p50", 50.0),
    ("p90", 90.0),
    ("p99", 99.0),
    ("p999", 99.9),
    ("p9999", 99.99),
];

impl Figures {
    pub fn of(plan: &Plan, counted: Counted) -> Self {
        let busiest_thread_share = busiest_share(&counted.threads);
        let members = match counted.threads.len() {
            ..=1 => Vec::new(),
            _ => counted.threads.iter().map(Tally::total).collect(),
        };
        let all = Tally::merged(counted.threads);
        let total = all.total();
        let answered = total.answered();
        let wall_seconds = all.wall_ns() as f64 / 1e9;
        let rate_per_second = match all.wall_ns() {
            0 => 0.0,
            _ => answered as f64 / wall_seconds,
        };
        let latency_ns_sum: u64 = all.sessions.iter().map(|it| it.latency_ns_sum).sum();
        let cpu_ns = all.spent.cpu_ns() as f64;
        let mut figures = Self {
            wall_seconds,
            rate_per_second,
            client_cpu_ns_per_operation: (answered > 0).then(|| cpu_ns / answered as f64),
            busiest_thread_share,
            concurrency: latency_ns_sum as f64 / all.wall_ns().max(1) as f64,
            fairness: fairness(&all),
            sessions_lost: all.lost.values().sum(),
            all,
            members,
            total,
            warnings: Vec::new(),
        };
        figures.warnings = figures.doubts(plan);
        figures
    }

    /// Little's law, where the number of transactions under way or in pauses is known: closed loop.
    fn idle_sessions(&self, plan: &Plan) -> Option<String> {
        let Pace::Closed { think_ns } = plan.pace else {
            return None;
        };
        if self.sessions_lost > 0 {
            return None;
        }
        let asked = plan.sessions as f64 * f64::from(plan.pipeline);
        let pausing = self.rate_per_second * think_ns as f64 / 1e9;
        let found = self.concurrency + pausing;
        let enough = self.total.answered() as f64 > 100.0 * asked;
        let off = (found / asked - 1.0).abs() > LITTLE_TOLERANCE;
        (off && enough).then(|| {
            format!(
                "by Little's law {found:.1} transactions were under way or in pauses on the average, but {asked} should have been: the sessions did not run all the time"
            )
        })
    }

    fn doubts(&self, plan: &Plan) -> Vec<String> {
        let mut found = Vec::from_iter(lost_sessions(plan, &self.all.lost));
        if self.all.not_begun > 0 {
            found.push(format!(
                "{} of the transactions asked for were not begun: they were those of lost sessions",
                self.all.not_begun
            ));
        }
        if self.total.answered() == 0 {
            found.push("no transaction was answered in the measured phase: a longer --duration, or look at the server".to_owned());
            return found;
        }
        found.extend(busy_client(plan, self.busiest_thread_share));
        found.extend(few_branches(plan));
        found.extend(self.idle_sessions(plan));
        if self.all.skipped > 0 {
            found.push(format!(
                "{} due transactions were skipped: the server is too slow for this rate, and the latencies are those of the others",
                self.all.skipped
            ));
        }
        if self.total.failed() > 0 {
            found.push(format!("errors: {}", by_kind(&self.total.errors)));
        }
        found
    }
}

/// What it means that a client thread was busy, if one was. With an embedded engine that is the
/// engine's work.
pub fn busy_client(plan: &Plan, share: f64) -> Option<String> {
    let is_client = matches!(plan.reach, Reach::Server(_));
    (is_client && share > BUSY_SHARE_MAX).then(|| {
        format!(
            "a client thread used {:.0} % of a CPU: the client may be what limits; more --threads, or CPUs of its own",
            share * 100.0
        )
    })
}

/// What it means that there are more sessions than branches, if there are.
fn few_branches(plan: &Plan) -> Option<String> {
    let data = plan.ground.as_ref()?.data;
    let scale = plan.sessions.div_ceil(u64::from(data.files));
    let is_met = data.profile.changes().contains(&Table::Branches);
    (is_met && u64::from(data.scale) < scale).then(|| {
        format!(
            "more sessions than branches: they wait for each other whatever the database can do; --scale {scale} has one for each"
        )
    })
}

/// What it means that sessions lost their connection, if some did.
pub fn lost_sessions(plan: &Plan, lost: &BTreeMap<String, u64>) -> Option<String> {
    let count: u64 = lost.values().sum();
    (count > 0).then(|| {
        format!(
            "{count} of {} sessions lost their connection and did no more ({})",
            plan.sessions,
            by_kind(lost)
        )
    })
}

/// Counts by kind, as people read them.
pub fn by_kind(counts: &BTreeMap<String, u64>) -> String {
    let counts = counts
        .iter()
        .map(|(kind, count)| format!("{count} × {kind}"));
    Vec::from_iter(counts).join(", ")
}

/// Share of a CPU that the busiest thread used.
pub fn busiest_share(threads: &[Tally]) -> f64 {
    let measured = threads.iter().filter(|it| it.wall_ns() > 0);
    let shares = measured.map(|it| it.spent.cpu_ns() as f64 / it.wall_ns() as f64);
    shares.fold(0.0, f64::max)
}

fn fairness(all: &Tally) -> Option<f64> {
    let counts = || all.sessions.iter().map(|it| it.transactions as f64);
    let (sum, squares) = (
        counts().sum::<f64>(),
        counts().map(|it| it * it).sum::<f64>(),
    );
    (squares > 0.0).then(|| sum * sum / (counts().count() as f64 * squares))
}
