//! Processes that outlive the kill: of another user, or held up in the kernel. The trial ends without them,
//! and its record names them.

use std::collections::BTreeSet;

/// How long processes may take to die: the kernel first frees the memory of a large one.
const DEATH_NS_MAX: u64 = 30_000_000_000;
/// How long those that may not be killed may take to end by themselves, as `sudo` does after its program.
const REFUSED_NS_MAX: u64 = 2_000_000_000;

/// What the kill has met so far.
#[derive(Debug, Default)]
pub struct Survivors {
    kill_began_ns: Option<u64>,
    /// Processes that the runner may not signal.
    refused: BTreeSet<u32>,
    given_up: bool,
}

impl Survivors {
    /// Notes that everything is being killed, since its first call.
    pub fn kill_began(&mut self, now: u64) {
        self.kill_began_ns.get_or_insert(now);
    }

    /// Notes what came of a signal to a process.
    pub fn note<T>(&mut self, pid: u32, sent: &concurve_probe::Result<T>) {
        if sent.as_ref().is_err_and(|error| error.is_refusal()) {
            self.refused.insert(pid);
        }
    }

    /// Whether the trial ends although processes live.
    pub fn given_up(&self) -> bool {
        self.given_up
    }

    /// Whether it is time to ask for the verdict.
    pub fn is_due(&self, now: u64) -> bool {
        let began_ns = self.kill_began_ns.filter(|_| !self.given_up);
        began_ns.is_some_and(|began_ns| now.saturating_sub(began_ns) >= REFUSED_NS_MAX)
    }

    /// Gives up, if these processes are waited for in vain; says which and why.
    pub fn give_up(&mut self, alive: &[u32], now: u64) -> Option<String> {
        let elapsed_ns = now.saturating_sub(self.kill_began_ns?);
        let (refused, held): (Vec<u32>, Vec<u32>) =
            alive.iter().partition(|pid| self.refused.contains(pid));
        let patience_ns = match held.is_empty() && !refused.is_empty() {
            true => REFUSED_NS_MAX,
            false => DEATH_NS_MAX,
        };
        if elapsed_ns < patience_ns {
            return None;
        }
        self.given_up = true;
        let mut said = Vec::new();
        if !refused.is_empty() {
            said.push(format!(
                "this user may not end {}, left running (as root: kill {})",
                named(&refused),
                numbers(&refused, " ")
            ));
        }
        if !held.is_empty() {
            let seconds = elapsed_ns / 1_000_000_000;
            said.push(format!(
                "SIGKILL has not ended {} in {seconds} s, as of a device that does not answer",
                named(&held)
            ));
        }
        if alive.is_empty() {
            said.push("processes of the trial still run, and cannot be listed".into());
        }
        Some(said.join("; "))
    }
}

fn named(pids: &[u32]) -> String {
    let noun = if pids.len() == 1 {
        "process"
    } else {
        "processes"
    };
    format!("{noun} {}", numbers(pids, ", "))
}

fn numbers(pids: &[u32], between: &str) -> String {
    let numbers: Vec<String> = pids.iter().map(u32::to_string).collect();
    numbers.join(between)
}

#[cfg(test)]
mod tests {
    use std::io;

    use concurve_probe::ProbeError;

    use super::*;

    const BEGAN_NS: u64 = 1_000_000_000;

    fn killing(refused: &[u32]) -> Survivors {
        let mut survivors = Survivors::default();
        survivors.kill_began(BEGAN_NS);
        for pid in refused {
            let error = io::Error::from_raw_os_error(libc::EPERM);
            let sent: concurve_probe::Result<bool> = Err(ProbeError::system("send", error));
            survivors.note(*pid, &sent);
        }
        survivors.note(7, &Ok(true));
        survivors
    }

    #[test]
    fn what_may_not_be_killed_is_given_up_soon_and_named() {
        let mut survivors = killing(&[5, 6]);
        assert!(!survivors.is_due(BEGAN_NS + REFUSED_NS_MAX - 1));
        assert_eq!(survivors.give_up(&[5], BEGAN_NS + REFUSED_NS_MAX - 1), None);
        assert!(survivors.is_due(BEGAN_NS + REFUSED_NS_MAX));
        let said = survivors.give_up(&[5], BEGAN_NS + REFUSED_NS_MAX).unwrap();
        assert!(
            said.contains("may not end process 5, left"),
            "6 has ended: {said}"
        );
        assert!(survivors.given_up());
        assert!(!survivors.is_due(u64::MAX), "it is said once");
    }

    #[test]
    fn what_was_killed_has_time_to_die() {
        let mut survivors = killing(&[5]);
        assert_eq!(
            survivors.give_up(&[5, 7], BEGAN_NS + REFUSED_NS_MAX),
            None,
            "7 may still be freeing its memory"
        );
        survivors.kill_began(BEGAN_NS + 1);
        let said = survivors.give_up(&[5, 7], BEGAN_NS + DEATH_NS_MAX).unwrap();
        assert!(said.contains("has not ended process 7 in 30 s"), "{said}");
        assert!(said.contains("kill 5)"), "{said}");
    }

    #[test]
    fn processes_that_cannot_be_listed_do_not_hold_the_trial_for_ever() {
        let mut survivors = killing(&[]);
        assert_eq!(survivors.give_up(&[], BEGAN_NS + REFUSED_NS_MAX), None);
        let said = survivors.give_up(&[], BEGAN_NS + DEATH_NS_MAX).unwrap();
        assert!(said.contains("cannot be listed"));
    }
}
