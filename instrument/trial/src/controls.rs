//! Sets a suspended process's controls and reads them back.

use concurve_probe::proc_fs::ProcFs;
use concurve_probe::{ProbeError, control, cpu_list};
use concurve_wire::record::GrantedControls;
use concurve_wire::spec::{Controls, Policy};

use crate::convert;

/// Sets what is asked for. The error says what was refused, which capability is missing, and
/// what to try; the granted controls are what the kernel reports afterwards.
pub fn apply(
    proc_fs: &ProcFs,
    pid: u32,
    requested: &Controls,
) -> (GrantedControls, Result<(), String>) {
    let set = set(pid, requested);
    let granted = read_back(proc_fs, pid, requested);
    let verdict = set.and_then(|()| compare(requested, &granted));
    (granted, verdict)
}

fn set(pid: u32, requested: &Controls) -> Result<(), String> {
    // The nice value first, while the policy in force is still one that it takes effect under.
    if let Some(cpus) = &requested.cpus {
        control::set_affinity(pid, cpus).map_err(|error| refused_cpus(cpus, &error))?;
    }
    if let Some(nice) = requested.nice {
        control::set_nice(pid, nice).map_err(|error| refused_nice(nice, &error))?;
    }
    if let Some(policy) = requested.policy {
        control::set_policy(pid, convert::kernel_policy(policy))
            .map_err(|error| refused_policy(policy, &error))?;
    }
    Ok(())
}

fn read_back(proc_fs: &ProcFs, pid: u32, requested: &Controls) -> GrantedControls {
    let stat = proc_fs.stat(pid).ok();
    GrantedControls {
        requested: requested.clone(),
        cpus: proc_fs
            .status(pid)
            .ok()
            .and_then(|status| status.cpus_allowed),
        nice: stat.as_ref().map(|stat| stat.nice),
        policy: control::policy(pid).ok().flatten().map(convert::policy),
    }
}

fn compare(requested: &Controls, granted: &GrantedControls) -> Result<(), String> {
    if let Some(cpus) = &requested.cpus
        && granted.cpus.as_ref() != Some(cpus)
    {
        return Err(format!(
            "CPUs {} were asked for and {} granted: the others are offline or outside this \
             process's cpuset; ask for CPUs of `nproc --all` that are online",
            cpu_list::format(cpus),
            granted
                .cpus
                .as_deref()
                .map_or("unknown".into(), cpu_list::format),
        ));
    }
    if requested.nice.is_some() && granted.nice != requested.nice {
        return Err(format!(
            "nice {:?} was asked for and {:?} granted",
            requested.nice, granted.nice
        ));
    }
    if requested.policy.is_some() && granted.policy != requested.policy {
        return Err(format!(
            "policy {:?} was asked for and {:?} granted",
            requested.policy, granted.policy
        ));
    }
    Ok(())
}

fn refused_cpus(cpus: &[u32], error: &ProbeError) -> String {
    let list = cpu_list::format(cpus);
    match error.errno() {
        Some(libc::EINVAL) => {
            let online = ProcFs::default().cpus_online().unwrap_or_default();
            format!(
                "CPUs {list} refused: offline, missing, or outside this process's cpuset; \
                 online are {}",
                cpu_list::format(&online)
            )
        }
        _ => format!("CPUs {list} refused: {error}; needs CAP_SYS_NICE"),
    }
}

fn refused_nice(nice: i32, error: &ProbeError) -> String {
    match error.errno() {
        Some(libc::EACCES | libc::EPERM) => format!(
            "nice {nice} refused: needs CAP_SYS_NICE or RLIMIT_NICE of at least {} \
             (`ulimit -e`)",
            20 - nice
        ),
        _ => format!("nice {nice} refused: {error}"),
    }
}

fn refused_policy(policy: Policy, error: &ProbeError) -> String {
    let shown = format!(
        "policy {:?} with priority {}",
        policy.class, policy.priority
    );
    match error.errno() {
        Some(libc::EPERM) => format!(
            "{shown} refused: needs CAP_SYS_NICE or RLIMIT_RTPRIO of at least {} (`ulimit -r`), \
             and in a cgroup of the cpu controller real-time runtime",
            policy.priority
        ),
        Some(libc::EINVAL) => format!("{shown} refused: this kernel does not know it"),
        _ => format!("{shown} refused: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_a_refusal() {
        let requested = Controls {
            cpus: Some(vec![0, 1, 2]),
            ..Default::default()
        };
        let granted = GrantedControls {
            requested: requested.clone(),
            cpus: Some(vec![0, 1]),
            nice: None,
            policy: None,
        };
        let message = compare(&requested, &granted).unwrap_err();
        assert!(
            message.contains("0-2") && message.contains("0-1"),
            "{message}"
        );
    }

    #[test]
    fn refusals_name_the_capability() {
        let error = |errno| ProbeError::system("x", std::io::Error::from_raw_os_error(errno));
        let message = refused_nice(-5, &error(libc::EACCES));
        assert!(
            message.contains("CAP_SYS_NICE") && message.contains("25"),
            "{message}"
        );
        let policy = Policy {
            class: concurve_wire::spec::PolicyClass::Fifo,
            priority: 10,
        };
        assert!(refused_policy(policy, &error(libc::EPERM)).contains("RLIMIT_RTPRIO"));
        assert!(refused_cpus(&[77], &error(libc::EINVAL)).contains("77"));
    }
}
