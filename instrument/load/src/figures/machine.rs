//! Who had the CPUs of this machine while a load ran that no trial observes: on a busy machine the rate
//! says more of the other programs than of the server.

use concurve_clock::{monotonic_ns, process_cpu_ns};
use concurve_probe::others::{OtherProcess, Others};
use concurve_probe::proc_fs::ProcFs;
use concurve_probe::process::{parent, tick_ns};
use concurve_reporter::Reporter;

use crate::called;
use crate::units::percent;

/// The CPUs were busy if they were so for this share of the time.
const BUSY_SHARE_MIN: f64 = 0.9;

/// And others used this share of their time.
const FOREIGN_SHARE_MIN: f64 = 0.05;
/// So many programs are named.
const NAMED_MAX: usize = 3;

/// The machine at the begin of a load.
#[derive(Debug)]
pub struct MachineBefore {
    proc_fs: ProcFs,
    at: Reading,
    others: Others,
}

/// Clocks and counters at one time.
#[derive(Debug, Clone, Copy)]
struct Reading {
    now_ns: u64,
    own_cpu_ns: u64,
    busy_ticks: u64,
    cpus: usize,
}

impl MachineBefore {
    /// Of a study's trial the record says it; of one beside an attached server the verdict on an
    /// objective must know it, too.
    pub fn outside_studies(reporter: &Reporter) -> Option<Self> {
        let alone = !called::by_a_study(reporter);
        alone.then(Self::read).flatten()
    }

    /// Of a trial the record says it.
    pub fn outside_trials(reporter: &Reporter) -> Option<Self> {
        let alone = !reporter.is_connected();
        alone.then(Self::read).flatten()
    }

    /// `None` if this system does not say what its CPUs did.
    fn read() -> Option<Self> {
        let proc_fs = ProcFs::default();
        let at = Reading::of(&proc_fs)?;
        let others = Others::take(&proc_fs);
        Some(Self {
            proc_fs,
            at,
            others,
        })
    }

    /// Who had the CPUs since then, if they were busy, and not by this load and a server here alone.
    pub fn busy_since(&self, has_server: bool) -> Option<String> {
        let has_server = has_server || called::beside_attached();
        let now = Reading::of(&self.proc_fs)?;
        let used = Others::take(&self.proc_fs).since(&self.others, parent(), &self.proc_fs);
        busy(self.at, now, &used.most, has_server)
    }
}

impl Reading {
    fn of(proc_fs: &ProcFs) -> Option<Self> {
        let (all, each) = proc_fs.cpu_ticks().ok()?;
        Some(Self {
            now_ns: monotonic_ns(),
            own_cpu_ns: process_cpu_ns(),
            busy_ticks: all.busy + all.steal,
            cpus: each.len(),
        })
    }
}

fn busy(
    before: Reading,
    now: Reading,
    others: &[OtherProcess],
    has_server: bool,
) -> Option<String> {
    let capacity_ns = (now.now_ns - before.now_ns) as f64 * now.cpus as f64;
    let share = |ns: u64| ns as f64 / capacity_ns.max(1.0);
    let busy_ns = now.busy_ticks.saturating_sub(before.busy_ticks) * tick_ns();
    let own_ns = now.own_cpu_ns.saturating_sub(before.own_cpu_ns);
    let programs = by_name(others);
    // A server here is to use the CPUs: nobody else knows which program it is, so the greatest is it.
    let server_ns = match has_server {
        true => programs.first().map_or(0, |it| it.cpu_ns),
        false => 0,
    };
    let foreign_ns = busy_ns.saturating_sub(own_ns + server_ns);
    if share(busy_ns) < BUSY_SHARE_MIN || share(foreign_ns) < FOREIGN_SHARE_MIN {
        return None;
    }
    let mut who: Vec<String> = Vec::new();
    for program in programs.iter().take(NAMED_MAX) {
        who.push(format!(
            "{} {}",
            program.who(),
            percent(share(program.cpu_ns))
        ));
    }
    who.push(format!("this load {}", percent(share(own_ns))));
    Some(format!(
        "the CPUs of this machine were busy for {} of the time ({}): what is not the server slowed it down",
        percent(share(busy_ns).min(1.0)),
        who.join(", ")
    ))
}

/// The processes of one name.
struct Program {
    name: String,
    pids: Vec<u32>,
    cpu_ns: u64,
}

impl Program {
    fn who(&self) -> String {
        // A process names itself: a line break in its name must not break the table's lines.
        let breaks = |it: char| it.is_control() || matches!(it, '\u{2028}' | '\u{2029}');
        let name = self.name.replace(breaks, "\u{fffd}");
        match self.pids[..] {
            [pid] => format!("{name} (pid {pid})"),
            _ => format!("{name} ({} processes)", self.pids.len()),
        }
    }
}

/// The one that used most first.
fn by_name(processes: &[OtherProcess]) -> Vec<Program> {
    let mut found: Vec<Program> = Vec::new();
    for process in processes {
        match found.iter_mut().find(|it| it.name == process.name) {
            Some(program) => {
                program.pids.push(process.pid);
                program.cpu_ns += process.cpu_ns;
            }
            None => found.push(Program {
                name: process.name.clone(),
                pids: vec![process.pid],
                cpu_ns: process.cpu_ns,
            }),
        }
    }
    found.sort_by_key(|it| std::cmp::Reverse(it.cpu_ns));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(seconds: u64, busy_seconds: u64, own_seconds: u64) -> Reading {
        Reading {
            now_ns: seconds * 1_000_000_000,
            own_cpu_ns: own_seconds * 1_000_000_000,
            busy_ticks: busy_seconds * 1_000_000_000 / tick_ns(),
            cpus: 2,
        }
    }

    fn used(name: &str, pid: u32, seconds: u64) -> OtherProcess {
        OtherProcess {
            pid,
            name: name.to_owned(),
            nice: 0,
            cpu_ns: seconds * 1_000_000_000,
        }
    }

    #[test]
    fn who_had_the_cpus_is_told_where_they_were_busy() {
        let (before, after) = (reading(100, 50, 3), reading(110, 70, 5));
        let others = [
            used("hog", 7, 8),
            used("server", 8, 6),
            used("server", 9, 4),
        ];
        let text = busy(before, after, &others, true).unwrap();
        let who = "100 % of the time (server (2 processes) 50 %, hog (pid 7) 40 %, this load 10 %)";
        assert!(text.contains(who), "{text}");
        assert_eq!(busy(before, reading(110, 65, 5), &others, true), None);
        assert_eq!(busy(before, before, &[], true), None);
    }

    #[test]
    fn the_name_of_a_process_breaks_no_line() {
        let (before, after) = (reading(100, 50, 3), reading(110, 70, 5));
        let text = busy(before, after, &[used("a\n\nb\u{2028}", 7, 8)], false).unwrap();
        assert!(
            text.contains("(a\u{fffd}\u{fffd}b\u{fffd} (pid 7) 40 %"),
            "{text}"
        );
    }

    #[test]
    fn a_server_and_its_load_may_fill_the_machine() {
        let (before, after) = (reading(100, 50, 3), reading(110, 70, 5));
        let server = [used("server", 8, 18)];
        assert_eq!(busy(before, after, &server, true), None);
        assert!(busy(before, after, &server, false).is_some());
        let alone = reading(110, 70, 23);
        assert_eq!(busy(before, alone, &[], false), None);
    }

    #[test]
    fn this_machine_can_be_read() {
        assert!(MachineBefore::read().is_some());
    }
}
