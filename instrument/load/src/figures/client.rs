//! Does the load limit what is measured, and what to do about it: one advice, whichever figures say so.

use std::num::NonZero;
use std::thread::available_parallelism;

use crate::plan::{Plan, Runners, Target};

/// A client thread that used more of a CPU than this may limit the rate.
const BUSY_SHARE_MAX: f64 = 0.85;

/// Was a client thread busy? With an embedded engine the engine's work makes it busy, and one that polls before it
/// sleeps is always busy.
pub fn is_busy(plan: &Plan, share: f64) -> bool {
    let is_client = matches!(plan.target, Target::Server(_)) && plan.spin_ns == 0;
    is_client && share > BUSY_SHARE_MAX
}

/// A warning if a client thread was busy.
pub fn busy_client(plan: &Plan, share: f64) -> Option<String> {
    is_busy(plan, share).then(|| {
        format!(
            "a client thread used {:.0} % of a CPU: the client may limit the rate; {}",
            share * 100.0,
            more(plan)
        )
    })
}

/// The warning of a load at a share of the greatest rate, where the thread used `before` while that was measured.
pub fn busy_client_of_share(plan: &Plan, before: f64, share: f64) -> Option<String> {
    match (is_busy(plan, before), is_busy(plan, share)) {
        (false, _) => busy_client(plan, share),
        (true, false) => busy_client(plan, before)
            .map(|it| format!("while the greatest rate was measured, {it}")),
        (true, true) => Some(format!(
            "a client thread used {:.0} % of a CPU, and {:.0} % while the greatest rate was measured: the client may limit both; {}",
            share * 100.0,
            before * 100.0,
            more(plan)
        )),
    }
}

/// What to do where the client is the limit.
pub fn more(plan: &Plan) -> String {
    let cpus = available_parallelism().map_or(1, NonZero::get) as u64;
    more_of(plan.runners, plan.sessions, cpus)
}

/// What to do where the load waited for a CPU.
pub fn for_a_cpu(plan: &Plan) -> String {
    let cpus = available_parallelism().map_or(1, NonZero::get) as u64;
    for_a_cpu_of(plan.runners, plan.sessions, cpus)
}

/// Another thread finds the CPU that is free while the first one waits for its own.
fn for_a_cpu_of(runners: Runners, sessions: u64, cpus: u64) -> String {
    let more = match runners {
        Runners::Threads(threads) if threads < cpus.min(sessions) => {
            format!("--threads {}, ", threads + 1)
        }
        _ => String::new(),
    };
    format!("{more}CPUs of its own, or a quiet machine")
}

/// More threads help only where there are sessions and CPUs for them.
fn more_of(runners: Runners, sessions: u64, cpus: u64) -> String {
    match runners {
        Runners::Threads(threads) if threads >= cpus => {
            format!(
                "it has a thread for each CPU that it may use ({cpus}): more CPUs, or a machine of its own"
            )
        }
        Runners::Threads(threads) if threads >= sessions => {
            "more --sessions and --threads, or CPUs of its own".to_owned()
        }
        Runners::Threads(_) => "more --threads, or CPUs of its own".to_owned(),
        Runners::Processes => "CPUs of its own".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_threads_are_advised_only_where_they_have_sessions_and_cpus() {
        let threads = Runners::Threads;
        for (runners, sessions, cpus, said) in [
            (threads(1), 50, 2, "more --threads, or CPUs of its own"),
            (
                threads(1),
                1,
                2,
                "more --sessions and --threads, or CPUs of its own",
            ),
            (
                threads(2),
                50,
                2,
                "it has a thread for each CPU that it may use (2): more CPUs, or a machine of its own",
            ),
            (
                threads(1),
                50,
                1,
                "it has a thread for each CPU that it may use (1): more CPUs, or a machine of its own",
            ),
            (Runners::Processes, 50, 2, "CPUs of its own"),
        ] {
            assert_eq!(more_of(runners, sessions, cpus), said);
        }
    }

    #[test]
    fn a_load_that_waits_for_a_cpu_is_given_another_thread_where_there_is_a_cpu_for_it() {
        let threads = Runners::Threads;
        for (runners, sessions, cpus, more) in [
            (threads(1), 50, 2, "--threads 2, "),
            (threads(2), 50, 2, ""),
            (threads(1), 1, 2, ""),
            (Runners::Processes, 50, 2, ""),
        ] {
            let said = format!("{more}CPUs of its own, or a quiet machine");
            assert_eq!(for_a_cpu_of(runners, sessions, cpus), said);
        }
    }
}
