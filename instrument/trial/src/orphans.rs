//! Assigns orphans to roles. The runner is a subreaper, so orphans become its children.

use concurve_probe::proc_fs::ProcFs;
use concurve_wire::ROLE_VARIABLE;

use crate::ledger::Ledger;

/// Children of the runner that belong to no role as yet, each with the role that it belongs to.
pub fn unclaimed_children(ledger: &Ledger, proc_fs: &ProcFs) -> Vec<(u32, usize)> {
    let own = std::process::id();
    let children = proc_fs.children_of_thread(own, own);
    let children = children
        .or_else(|_| proc_fs.children(own))
        .unwrap_or_default();
    children
        .into_iter()
        .filter(|pid| ledger.role_of(*pid).is_none())
        .filter_map(|pid| Some((pid, whose(ledger, proc_fs, pid)?)))
        .collect()
}

/// The role of an orphan, by its process group or its environment.
pub fn whose(ledger: &Ledger, proc_fs: &ProcFs, pid: u32) -> Option<usize> {
    if ledger.is_no_role(pid) {
        return None;
    }
    if ledger.roles.len() == 1 {
        return Some(0);
    }
    let group = proc_fs.stat(pid).ok().map(|stat| stat.group);
    group.and_then(|group| ledger.role_of(group)).or_else(|| {
        let name = proc_fs.environment_variable(pid, ROLE_VARIABLE)?;
        ledger.role_names.iter().position(|other| *other == name)
    })
}
