//! Whether `wait4` knows of all processes of a role. The children of a parent that ignores SIGCHLD are waited
//! for by nobody, so what they used is in no answer of `wait4`; other sources have counted it.

/// A complete sum of the threads' accounts is by the clock of `wait4`: it may be this much more.
const MORE_BY_ACCOUNTS: f64 = 1.1;
/// The counter of the tree also counts while a hypervisor or an interrupt has the CPU, and samples miss a part.
const MORE_BY_COUNTER: f64 = 1.5;
/// Too little to be told from the ends of exits and from ticks.
const LITTLE_NS: u64 = 20_000_000;

/// Why figures of `wait4` are missing where it does not know of all processes.
pub const NOT_WAITED_FOR: &str =
    "processes of it were not waited for (their parent ignores SIGCHLD, or they live on)";

/// The CPU time of a role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuTime {
    pub ns: u64,
    /// Whether `wait4` knows of all processes.
    pub is_waited_for: bool,
}

/// The CPU time by `wait4`, or by the source that has clearly more. `accounts_complete`: there is an account
/// of each thread at its end. `is_alone`: there was one process alone, so that no child can be missing, however
/// much more the counter has. `wait4` says nothing of a role whose first process lives on.
pub fn cpu_time(
    wait4_ns: Option<u64>,
    accounts_ns: u64,
    accounts_complete: bool,
    tree_ns: Option<u64>,
    is_alone: bool,
) -> CpuTime {
    let (other_ns, factor) = match accounts_complete {
        true => (accounts_ns, MORE_BY_ACCOUNTS),
        false => (accounts_ns.max(tree_ns.unwrap_or(0)), MORE_BY_COUNTER),
    };
    let Some(wait4_ns) = wait4_ns else {
        return CpuTime {
            ns: accounts_ns.max(tree_ns.unwrap_or(0)),
            is_waited_for: false,
        };
    };
    let most_ns = (wait4_ns as f64 * factor) as u64 + LITTLE_NS;
    match other_ns > most_ns && !is_alone {
        true => CpuTime {
            ns: other_ns,
            is_waited_for: false,
        },
        false => CpuTime {
            ns: wait4_ns,
            is_waited_for: true,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn known(wait4_ns: u64, accounts_ns: u64, complete: bool, tree_ns: Option<u64>) -> (u64, bool) {
        let time = cpu_time(Some(wait4_ns), accounts_ns, complete, tree_ns, false);
        (time.ns, time.is_waited_for)
    }

    #[test]
    fn children_that_nobody_waited_for_are_counted_by_the_source_that_has_them() {
        assert_eq!(known(S, 3 * S, true, Some(4 * S)), (3 * S, false));
        assert_eq!(known(S, S / 2, false, Some(4 * S)), (4 * S, false));
        assert_eq!(known(S, 3 * S, false, None), (3 * S, false));
    }

    #[test]
    fn nobody_has_waited_for_a_process_that_lives_on() {
        let time = cpu_time(None, S, false, Some(2 * S), true);
        assert_eq!((time.ns, time.is_waited_for), (2 * S, false));
    }

    #[test]
    fn one_process_is_waited_for_however_much_was_stolen_from_it() {
        // A hypervisor had the CPU for 40 % of the time.
        let stolen_ns = S * 5 / 3;
        let time = cpu_time(Some(S), S / 2, false, Some(stolen_ns), true);
        assert_eq!((time.ns, time.is_waited_for), (S, true));
        assert_eq!(known(S, S / 2, false, Some(stolen_ns)), (stolen_ns, false));
    }

    #[test]
    fn what_clocks_differ_by_changes_nothing() {
        assert_eq!(known(S, S + S / 20, true, Some(4 * S)), (S, true));
        // A hypervisor and interrupts had the CPU for a third of the time.
        assert_eq!(known(S, S / 2, false, Some(S + S / 3)), (S, true));
        assert_eq!(known(1_000_000, 15_000_000, true, None), (1_000_000, true));
    }
}
