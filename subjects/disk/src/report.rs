//! Account → the report channel.

use concurve_reporter::Reporter;

use crate::account::Account;
use crate::error::Error;
use crate::machine::Machine;

/// Simulated figures, in simulated seconds.
pub fn write(machine: &Machine, account: &Account, reporter: &Reporter) -> Result<(), Error> {
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
