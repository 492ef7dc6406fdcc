//! The activity of the whole machine during the trial.

use concurve_probe::proc_fs::ProcFs;
use concurve_probe::proc_stat::CpuTicks;
use concurve_probe::process;
use concurve_wire::record::{Absent, MachineRecord};
use std::collections::BTreeMap;

use crate::others::Others;

/// The processes that used the CPUs are looked for from this many ticks on, and from this part of the
/// machine's CPU time on.
const FOREIGN_TICKS_MIN: u64 = 3;
const FOREIGN_PART_MIN: u64 = 100;

/// With fewer ticks than this the resolution is too low for foreign CPU time.
const TICKS_MIN: u64 = 5;

/// Counters of the machine at one time.
#[derive(Debug)]
pub struct Snapshot {
    ticks: Option<CpuTicks>,
    ticks_each: BTreeMap<u32, CpuTicks>,
    psi: BTreeMap<String, u64>,
    /// CPU time of the kernel's threads.
    kernel_ns: BTreeMap<u32, u64>,
    roles: usize,
    absent: Absent,
}

impl Snapshot {
    /// Reads the counters. Kernel threads, which cost some µs each, are read only if there are several
    /// `roles`, such as a volume, a server and its load: a trial of one program is to cost little, and
    /// whole ticks of them must do ([`Others::since`]).
    pub fn take(proc_fs: &ProcFs, roles: usize) -> Self {
        let mut absent = Absent::new();
        let mut psi = BTreeMap::new();
        for resource in ["cpu", "io", "memory"] {
            match proc_fs.pressure(resource) {
                Ok(pressure) => {
                    psi.insert(format!("{resource}_some_ns"), pressure.some_ns);
                    if let Some(full_ns) = pressure.full_ns.filter(|_| resource != "cpu") {
                        psi.insert(format!("{resource}_full_ns"), full_ns);
                    }
                }
                Err(error) => {
                    absent.insert(format!("psi.{resource}"), error.to_string());
                }
            }
        }
        let ticks = proc_fs.cpu_ticks();
        if let Err(error) = &ticks {
            for name in ["busy_ns", "steal_ns", "foreign_cpu_ns"] {
                absent.insert(name.into(), error.to_string());
            }
        }
        let ticks_each = proc_fs.cpu_ticks_each();
        if let Err(error) = &ticks_each {
            absent.insert("busy_ns_by_cpu".into(), error.to_string());
        }
        Self {
            ticks: ticks.ok(),
            ticks_each: ticks_each.unwrap_or_default(),
            psi,
            kernel_ns: match roles {
                1 => BTreeMap::new(),
                _ => proc_fs.kernel_threads(),
            },
            roles,
            absent,
        }
    }

    /// CPU time of the kernel's threads since an earlier snapshot. It counts as the trial's own:
    /// they write back what the roles wrote, handle their packets, and drive their loop devices.
    fn kernel_since(&self, earlier: &Self) -> u64 {
        let used = self.kernel_ns.iter().map(|(pid, now)| {
            let before = earlier.kernel_ns.get(pid).copied().unwrap_or(0);
            now.saturating_sub(before)
        });
        used.sum()
    }

    /// Differences since `self`; `own_cpu_ns` is what the roles and the runner used, `others` were there
    /// at the begin, and `is_own` says which processes belong to attached roles.
    pub fn until(
        self,
        end: &Self,
        wall_ns: u64,
        own_cpu_ns: u64,
        others: &Others,
        is_own: impl Fn(u32) -> bool,
        proc_fs: &ProcFs,
    ) -> MachineRecord {
        let tick_ns = process::tick_ns();
        let own_cpu_ns = own_cpu_ns + end.kernel_since(&self);
        let mut absent = self.absent;
        let mut record = MachineRecord {
            cpus: None,
            tick_ns: Some(tick_ns),
            psi: self
                .psi
                .into_iter()
                .filter_map(|(name, begin)| {
                    let total = end.psi.get(&name)?.saturating_sub(begin);
                    Some((name, total))
                })
                .collect(),
            ..MachineRecord::default()
        };
        record.busy_ns_by_cpu = self
            .ticks_each
            .into_iter()
            .filter_map(|(cpu, begin)| {
                let busy = end.ticks_each.get(&cpu)?.busy.saturating_sub(begin.busy);
                Some((cpu, busy * tick_ns))
            })
            .collect();
        match proc_fs.cpus_online() {
            Ok(cpus) => record.cpus = Some(cpus.len() as u32),
            Err(error) => {
                absent.insert("cpus".into(), error.to_string());
            }
        }
        if let Some((begin, end)) = self.ticks.zip(end.ticks) {
            let busy_ns = end.busy.saturating_sub(begin.busy) * tick_ns;
            record.busy_ns = Some(busy_ns);
            record.steal_ns = Some(end.steal.saturating_sub(begin.steal) * tick_ns);
            if wall_ns >= TICKS_MIN * tick_ns {
                record.foreign_cpu_ns = Some(busy_ns.saturating_sub(own_cpu_ns));
            } else {
                let reason = format!("the trial was shorter than {TICKS_MIN} ticks of tick_ns");
                absent.insert("foreign_cpu_ns".into(), reason);
            }
        }
        let capacity_ns = wall_ns * u64::from(record.cpus.unwrap_or(1));
        let noticed_ns = (FOREIGN_TICKS_MIN * tick_ns).max(capacity_ns / FOREIGN_PART_MIN);
        if let Some(foreign_ns) = record.foreign_cpu_ns.filter(|it| *it >= noticed_ns) {
            let used = Others::take(proc_fs).without(is_own).since(others, tick_ns);
            // With several roles the kernel's threads were read, more exactly, and are left out already.
            let kernel_ns = if self.roles == 1 { used.kernel_ns } else { 0 };
            let foreign_ns = foreign_ns.saturating_sub(kernel_ns);
            record.foreign_cpu_ns = Some(foreign_ns);
            if foreign_ns >= noticed_ns {
                record.foreign_low_priority_ns = Some(used.low_priority_ns.min(foreign_ns));
                record.foreign_processes = used.most;
                if let Some(reason) = used.missing {
                    absent.insert("foreign_processes".into(), reason);
                }
            }
        }
        record.absent = absent;
        record
    }
}
