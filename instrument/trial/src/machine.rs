//! The activity of the whole machine during the trial.

use concurve_probe::others::Others;
use concurve_probe::proc_fs::ProcFs;
use concurve_probe::proc_stat::CpuTicks;
use concurve_probe::process;
use concurve_wire::record::{Absent, MachineRecord};
use std::collections::BTreeMap;

use crate::convert;
use crate::timeline::Busy;

/// The processes that used the CPUs are looked for from this many ticks on, and from this part of the
/// machine's CPU time on; of a machine of many CPUs, from this part of the time of so many: on those that
/// the roles are bound to, that may be much.
const FOREIGN_TICKS_MIN: u64 = 3;
const FOREIGN_PART_MIN: u64 = 100;
const FOREIGN_CPUS_MAX: u32 = 2;

/// So many processes are named.
const NAMED_MAX: usize = 3;

/// With fewer ticks than this the resolution is too low for foreign CPU time.
const TICKS_MIN: u64 = 5;

/// Counters of the machine at one time.
#[derive(Debug)]
pub struct Snapshot {
    ticks: Option<CpuTicks>,
    ticks_each: BTreeMap<u32, CpuTicks>,
    psi: BTreeMap<String, u64>,
    absent: Absent,
}

impl Snapshot {
    /// Reads the counters.
    pub fn take(proc_fs: &ProcFs) -> Self {
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
        let (ticks, ticks_each) = match proc_fs.cpu_ticks() {
            Ok((all, each)) => (Some(all), each),
            Err(error) => {
                for name in ["busy_ns", "busy_ns_by_cpu", "steal_ns", "foreign_cpu_ns"] {
                    absent.insert(name.into(), error.to_string());
                }
                (None, BTreeMap::new())
            }
        };
        Self {
            ticks,
            ticks_each,
            psi,
            absent,
        }
    }

    /// Busy ticks of each CPU; empty if they could not be read.
    pub fn busy_by_cpu(&self) -> Busy {
        let each = self.ticks_each.iter();
        each.map(|(cpu, ticks)| (*cpu, ticks.busy)).collect()
    }

    /// Differences since `self`; `own_cpu_ns` is what the roles and the runner used, `others` were there
    /// at the begin, and `is_own` says which processes belong to roles.
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
        let capacity_ns = wall_ns * u64::from(record.cpus.unwrap_or(1).min(FOREIGN_CPUS_MAX));
        let noticed_ns = (FOREIGN_TICKS_MIN * tick_ns).max(capacity_ns / FOREIGN_PART_MIN);
        if let Some(foreign_ns) = record.foreign_cpu_ns.filter(|it| *it >= noticed_ns) {
            let used =
                Others::take(proc_fs)
                    .without(is_own)
                    .since(others, process::parent(), proc_fs);
            // The kernel's threads count as the trial's own: they write back what the roles wrote, handle
            // their packets, and drive their loop devices. The laboratory is no stranger: what it
            // does meanwhile, such as its line of progress, belongs to measuring.
            let foreign_ns = foreign_ns.saturating_sub(used.kernel_ns + used.laboratory_ns);
            record.foreign_cpu_ns = Some(foreign_ns);
            if foreign_ns >= noticed_ns {
                record.foreign_low_priority_ns = Some(used.low_priority_ns.min(foreign_ns));
                record.foreign_processes = {
                    let most = used.most.into_iter().take(NAMED_MAX);
                    most.map(convert::foreign).collect()
                };
                if let Some(reason) = used.missing {
                    absent.insert("foreign_processes".into(), reason);
                }
            }
        }
        record.absent = absent;
        record
    }
}
