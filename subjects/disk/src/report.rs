//! Shows the counts of a simulation: on the report channel, and as a table.

use std::fmt::Write;
use std::time::Duration;

use concurve_reporter::Reporter;

use crate::account::Account;
use crate::error::Error;
use crate::machine::Machine;

/// Simulated figures, in simulated seconds.
pub fn report(machine: &Machine, account: &Account, reporter: &Reporter) -> Result<(), Error> {
    let seconds = account.end as f64 / 1e9;
    let disks = machine.disks as f64;
    let requests = account.requests() as f64;
    let indicators = [
        ("operations", requests, None),
        ("simulated_seconds", seconds, Some("s")),
        (
            "simulated_requests_per_second",
            requests / seconds,
            Some("1/s"),
        ),
        ("disk_requests", account.sent as f64, None),
        ("merged_requests", account.merged as f64, None),
        (
            "disk_busy_share",
            account.busy as f64 / 1e9 / seconds / disks,
            None,
        ),
        (
            "disk_held_back_share",
            account.idled as f64 / 1e9 / seconds / disks,
            None,
        ),
        ("read_mean_ms", account.mean_read() / 1e6, Some("ms")),
        (
            "read_p99_ms",
            account.reads.value_at_quantile(0.99) as f64 / 1e3,
            Some("ms"),
        ),
        ("write_mean_ms", account.mean_write() / 1e6, Some("ms")),
    ];
    for (name, value, unit) in indicators {
        // Without reads there is no mean of them: nothing is said, rather than 0.
        if value.is_finite() {
            reporter.indicator(name, value, unit)?;
        }
    }
    for (number, share) in account.shares.iter().enumerate() {
        let worker = format!("process-{number}");
        reporter.worker_indicator("process_requests", share.requests as f64, None, &worker)?;
        reporter.worker_indicator("process_end", share.end as f64 / 1e9, Some("s"), &worker)?;
    }
    reporter.fact("scheduler", machine.scheduler.name())?;
    Ok(())
}

/// What was simulated, and how long that took here.
pub fn table(machine: &Machine, account: &Account, took: Duration) -> String {
    let seconds = account.end as f64 / 1e9;
    let disks = machine.disks as f64;
    let requests = account.requests();
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        writeln!(text, "{name:<26}{value}").expect("a string takes all");
    };
    line("scheduler", machine.scheduler.name().into());
    line("simulated time", format!("{seconds:.3} s"));
    line(
        "requests",
        format!("{requests} ({:.0} a second)", requests as f64 / seconds),
    );
    line(
        "sent to the disks",
        format!("{} ({} merged)", account.sent, account.merged),
    );
    let share = |time: u64| 100.0 * time as f64 / 1e9 / seconds / disks;
    line("disks busy", format!("{:.1} %", share(account.busy)));
    line(
        "idle, requests waiting",
        format!("{:.1} %", share(account.idled)),
    );
    for (name, mean, histogram) in [
        ("reads", account.mean_read(), &account.reads),
        ("writes", account.mean_write(), &account.writes),
    ] {
        if !histogram.is_empty() {
            let p99 = histogram.value_at_quantile(0.99) as f64 / 1e3;
            let most = histogram.max() as f64 / 1e3;
            let times = format!(
                "mean {:.3} ms, p99 {p99:.3} ms, most {most:.3} ms",
                mean / 1e6
            );
            line(name, times);
        }
    }
    let speed = requests as f64 / took.as_secs_f64() / 1e6;
    line(
        "simulated in",
        format!(
            "{:.3} s ({speed:.2} million requests a second)",
            took.as_secs_f64()
        ),
    );
    text
}
