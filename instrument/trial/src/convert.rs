//! Converts the types of the probe to those of the seam, and a requested policy the other way.

use concurve_probe::core_speed as probe;
use concurve_probe::others::OtherProcess;
use concurve_probe::process::Exit as ObservedExit;
use concurve_probe::task::{Policy as KernelPolicy, PolicyClass as KernelPolicyClass};
use concurve_wire::record::{CoreSpeed, Exit, ForeignProcess};
use concurve_wire::spec::{Policy, PolicyClass};

/// How a role's first process ended, for its record.
pub fn exit(observed: ObservedExit) -> Exit {
    match observed {
        ObservedExit::Code(code) => Exit::Code(code),
        ObservedExit::Signal(signal) => Exit::Signal(signal),
    }
}

/// How fast a CPU ran, for a record.
pub fn core_speed(speed: probe::CoreSpeed) -> CoreSpeed {
    let probe::CoreSpeed {
        cpu,
        chained_per_us,
        independent_per_us,
    } = speed;
    CoreSpeed {
        cpu,
        chained_per_us,
        independent_per_us,
    }
}

/// A process outside the trial that used CPU time, for a record.
pub fn foreign(other: OtherProcess) -> ForeignProcess {
    let OtherProcess {
        pid,
        name,
        nice,
        cpu_ns,
    } = other;
    ForeignProcess {
        pid,
        name,
        nice,
        cpu_ns,
    }
}

/// A policy that the kernel reports, for a record.
pub fn policy(reported: KernelPolicy) -> Policy {
    let class = match reported.class {
        KernelPolicyClass::Other => PolicyClass::Other,
        KernelPolicyClass::Batch => PolicyClass::Batch,
        KernelPolicyClass::Idle => PolicyClass::Idle,
        KernelPolicyClass::Fifo => PolicyClass::Fifo,
        KernelPolicyClass::Rr => PolicyClass::Rr,
        KernelPolicyClass::Deadline => PolicyClass::Deadline,
        KernelPolicyClass::Ext => PolicyClass::Ext,
    };
    Policy {
        class,
        priority: reported.priority,
    }
}

/// A policy that a spec requests, for the kernel.
pub fn kernel_policy(requested: Policy) -> KernelPolicy {
    let class = match requested.class {
        PolicyClass::Other => KernelPolicyClass::Other,
        PolicyClass::Batch => KernelPolicyClass::Batch,
        PolicyClass::Idle => KernelPolicyClass::Idle,
        PolicyClass::Fifo => KernelPolicyClass::Fifo,
        PolicyClass::Rr => KernelPolicyClass::Rr,
        PolicyClass::Deadline => KernelPolicyClass::Deadline,
        PolicyClass::Ext => KernelPolicyClass::Ext,
    };
    KernelPolicy {
        class,
        priority: requested.priority,
    }
}

#[cfg(test)]
mod tests {
    use concurve_probe::task;

    use super::*;

    #[test]
    fn every_policy_of_the_kernel_goes_both_ways() {
        for number in [0, 1, 2, 3, 5, 6, 7] {
            let kernel = task::policy(number, 7).unwrap();
            let converted = policy(kernel);
            assert_eq!(kernel_policy(converted), kernel);
            assert_eq!(format!("{converted:?}"), format!("{kernel:?}"));
        }
    }

    #[test]
    fn an_exit_keeps_its_number() {
        assert_eq!(exit(ObservedExit::Code(3)), Exit::Code(3));
        assert_eq!(exit(ObservedExit::Signal(9)), Exit::Signal(9));
    }
}
