//! How fast CPUs run at this moment, by two fixed loops.
//!
//! What shares a core from outside (another virtual machine on its other hardware thread) leaves no
//! sign: no CPU time is stolen, nobody waits, and yet all takes longer. Instructions that are independent
//! of each other feel it, since both hardware threads compete for the units of the core. A chain of
//! instructions, each of which needs the result of the one before, leaves most units idle: it follows the
//! clock frequency, and little else. Each loop takes a tenth of a millisecond.
#![allow(unsafe_code)]

use concurve_clock as clock;

use crate::control;

/// The speed of one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoreSpeed {
    pub cpu: u32,
    /// Instructions of a chain in a microsecond of CPU time.
    pub chained_per_us: u32,
    /// Independent instructions in a microsecond of CPU time.
    pub independent_per_us: u32,
}

/// Each loop runs so often, and the middle time counts: an interrupt is in one of them.
const REPEATS: usize = 3;
/// Rounds of a loop, each of [`WIDTH`] instructions.
const ROUNDS: u64 = 50_000;
const WIDTH: u64 = 6;
/// The calling thread, as the system calls on affinity name it.
const CALLER: u32 = 0;

/// The speed of the first and of the last CPU that the calling thread may use. It moves to each of them, and
/// may run on all of them again in the end.
///
/// # Errors
/// The kernel does not let the thread move, or the processor is none that is known here.
pub fn read() -> Result<Vec<CoreSpeed>, String> {
    if !KNOWN {
        return Err(format!("no loop for {}", std::env::consts::ARCH));
    }
    let allowed = control::affinity(CALLER).map_err(|error| error.to_string())?;
    let mut asked = vec![allowed[0], allowed[allowed.len() - 1]];
    asked.dedup();
    let found = asked.into_iter().map(speed_of).collect();
    let back = control::set_affinity(CALLER, &allowed).map_err(|error| error.to_string());
    back.and(found)
}

fn speed_of(cpu: u32) -> Result<CoreSpeed, String> {
    control::set_affinity(CALLER, &[cpu]).map_err(|error| error.to_string())?;
    Ok(CoreSpeed {
        cpu,
        chained_per_us: per_us(chained),
        independent_per_us: per_us(independent),
    })
}

/// Instructions of a loop in a microsecond.
fn per_us(run: fn()) -> u32 {
    let mut times = [0; REPEATS];
    for time in &mut times {
        let begin = clock::thread_cpu_ns();
        run();
        *time = clock::thread_cpu_ns().saturating_sub(begin).max(1);
    }
    times.sort_unstable();
    u32::try_from(ROUNDS * WIDTH * 1000 / times[REPEATS / 2]).unwrap_or(u32::MAX)
}

#[cfg(any(
    target_arch = "x86_64",
    target_arch = "aarch64",
    target_arch = "riscv64"
))]
mod loops {
    use super::ROUNDS;
    use std::arch::asm;

    pub const KNOWN: bool = true;

    /// The value, which the compiler takes for unknown from here on: it joins no two instructions.
    #[inline(always)]
    fn unknown(mut value: u64) -> u64 {
        // SAFETY: no instruction at all; the value stays in its register.
        unsafe { asm!("/* {0} */", inout(reg) value, options(nomem, nostack, preserves_flags)) };
        value
    }

    pub fn chained() {
        // Rotations: some processors add a constant without waiting for the sum.
        let mut value = 1_u64;
        for _ in 0..ROUNDS {
            value = unknown(value.rotate_left(7));
            value = unknown(value.rotate_left(7));
            value = unknown(value.rotate_left(7));
            value = unknown(value.rotate_left(7));
            value = unknown(value.rotate_left(7));
            value = unknown(value.rotate_left(7));
        }
        std::hint::black_box(value);
    }

    pub fn independent() {
        let (mut a, mut b, mut c, mut d, mut e, mut f) = (0_u64, 1_u64, 2_u64, 3_u64, 4_u64, 5_u64);
        for _ in 0..ROUNDS {
            a = unknown(a.wrapping_add(1));
            b = unknown(b.wrapping_add(1));
            c = unknown(c.wrapping_add(1));
            d = unknown(d.wrapping_add(1));
            e = unknown(e.wrapping_add(1));
            f = unknown(f.wrapping_add(1));
        }
        std::hint::black_box(a ^ b ^ c ^ d ^ e ^ f);
    }
}

#[cfg(not(any(
    target_arch = "x86_64",
    target_arch = "aarch64",
    target_arch = "riscv64"
)))]
mod loops {
    pub const KNOWN: bool = false;
    pub fn chained() {}
    pub fn independent() {}
}

use loops::{KNOWN, chained, independent};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cpu_has_a_speed_and_the_thread_stays_where_it_may_run() {
        let before = control::affinity(CALLER).unwrap();
        let found = read().unwrap();
        assert_eq!(control::affinity(CALLER).unwrap(), before);
        assert_eq!(found.len(), before.len().min(2));
        for speed in &found {
            assert!(before.contains(&speed.cpu));
            assert!(speed.chained_per_us > 0 && speed.independent_per_us > 0);
        }
    }
}
