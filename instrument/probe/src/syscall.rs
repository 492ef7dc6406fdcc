//! `/proc/PID/task/TID/syscall`: the system call that a thread waits in.
//!
//! The kernel reports the system call of a sleeping thread; a thread that runs or is runnable is
//! `running`. A read blocks while the thread is about to sleep: on a machine with more work than CPUs
//! that may take as long as the thread waits for a CPU.

use crate::{ProbeError, Result};

/// What a thread was doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// On a CPU or runnable.
    Running,
    /// Waiting in the kernel, but in no system call: a page fault, a stop.
    Outside,
    /// Waiting in a system call.
    Call(Call),
    /// It is exiting and has no stack any more.
    Gone,
}

/// A system call that a thread waits in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    number: i64,
    arguments: [u64; 6],
    /// The stack is below 4 GiB: a 32-bit program, whose calls have other numbers.
    narrow: bool,
}

/// What a thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Futex,
    Disk,
    Network,
    Poll,
    Pipe,
    Sleep,
    Child,
    Other,
}

/// What a call says of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// At the futex word of this address.
    Futex(u64),
    /// For this descriptor, whose kind must be determined.
    Descriptor(u32),
    Known(Kind),
}

/// Parses the file's text: `running`, `-1 SP PC`, or `NUMBER` six arguments `SP PC`.
pub fn parse(text: &str) -> Result<Doing> {
    let wrong = || ProbeError::syntax("syscall", text);
    // A line without its end was cut.
    let line = text.strip_suffix('\n').ok_or_else(wrong)?;
    if line == "running" {
        return Ok(Doing::Running);
    }
    let (number, rest) = line.split_once(' ').ok_or_else(wrong)?;
    let number: i64 = number.parse().map_err(|_| wrong())?;
    let fields = rest.split(' ').map(hexadecimal).collect::<Option<Vec<_>>>();
    match (number, fields.ok_or_else(wrong)?.as_slice()) {
        (-1, [0, 0]) => Ok(Doing::Gone),
        (-1, [_, _]) => Ok(Doing::Outside),
        (0.., &[a, b, c, d, e, f, stack, _]) => Ok(Doing::Call(Call {
            number,
            arguments: [a, b, c, d, e, f],
            narrow: stack <= u64::from(u32::MAX),
        })),
        _ => Err(wrong()),
    }
}

fn hexadecimal(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

impl Call {
    /// What the thread waits for, by the numbers of this architecture.
    pub fn wait(&self) -> Wait {
        if self.narrow {
            return Wait::Known(Kind::Other);
        }
        let first = self.arguments[0];
        match self.number {
            libc::SYS_futex if waits(self.arguments[1]) => Wait::Futex(first),
            SYS_FUTEX_WAIT => Wait::Futex(first),
            // Waits at many words at once, so no single address applies.
            libc::SYS_futex_waitv => Wait::Known(Kind::Futex),
            libc::SYS_read | libc::SYS_write | libc::SYS_readv | libc::SYS_writev => {
                Wait::Descriptor(first as u32)
            }
            number => Wait::Known(kind(number)),
        }
    }
}

/// `futex_wait` of Linux 6.7, the same number on every architecture.
const SYS_FUTEX_WAIT: libc::c_long = 455;
// libc lacks it.
#[cfg(target_arch = "x86_64")]
const SYS_IO_PGETEVENTS: libc::c_long = 333;
#[cfg(not(target_arch = "x86_64"))]
const SYS_IO_PGETEVENTS: libc::c_long = 292;

/// Whether a futex operation is one that waits, whatever its flags.
fn waits(operation: u64) -> bool {
    let command = operation as i32 & !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME);
    matches!(
        command,
        libc::FUTEX_WAIT
            | libc::FUTEX_WAIT_BITSET
            | libc::FUTEX_LOCK_PI
            | libc::FUTEX_LOCK_PI2
            | libc::FUTEX_WAIT_REQUEUE_PI
    )
}

fn kind(number: i64) -> Kind {
    match number {
        libc::SYS_fsync
        | libc::SYS_fdatasync
        | libc::SYS_sync
        | libc::SYS_syncfs
        | libc::SYS_sync_file_range
        | libc::SYS_msync
        | libc::SYS_pread64
        | libc::SYS_pwrite64
        | libc::SYS_preadv
        | libc::SYS_pwritev
        | libc::SYS_preadv2
        | libc::SYS_pwritev2
        | libc::SYS_io_getevents
        | SYS_IO_PGETEVENTS
        | libc::SYS_io_uring_enter => Kind::Disk,
        libc::SYS_sendto
        | libc::SYS_sendmsg
        | libc::SYS_sendmmsg
        | libc::SYS_recvfrom
        | libc::SYS_recvmsg
        | libc::SYS_recvmmsg
        | libc::SYS_accept
        | libc::SYS_accept4
        | libc::SYS_connect => Kind::Network,
        libc::SYS_ppoll | libc::SYS_pselect6 | libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => {
            Kind::Poll
        }
        libc::SYS_nanosleep | libc::SYS_clock_nanosleep => Kind::Sleep,
        // vfork waits for the exec of its child.
        libc::SYS_wait4 | libc::SYS_waitid | libc::SYS_clone | libc::SYS_clone3 => Kind::Child,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_vfork => Kind::Child,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_poll | libc::SYS_select | libc::SYS_epoll_wait => Kind::Poll,
        _ => Kind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(number: i64, arguments: [u64; 3]) -> Wait {
        let [a, b, c] = arguments;
        let text =
            format!("{number} {a:#x} {b:#x} {c:#x} 0x0 0x0 0x0 0x7fff7d32bb18 0x7f30424ed503\n");
        match parse(&text).unwrap() {
            Doing::Call(call) => call.wait(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn reads_what_a_thread_does() {
        assert_eq!(parse("running\n").unwrap(), Doing::Running);
        assert_eq!(
            parse("-1 0x7ffd0b5dd8f0 0x7f1c1f2c5d2a\n").unwrap(),
            Doing::Outside
        );
        assert_eq!(parse("-1 0x0 0x0\n").unwrap(), Doing::Gone);
        let line =
            "230 0x1 0x1 0x7fff7d32bb30 0x0 0x0 0x0 0x7fff7d32bb18 0x7f30424ed503\n".to_owned();
        let Doing::Call(call) = parse(&line).unwrap() else {
            panic!()
        };
        assert_eq!((call.number, call.arguments[2]), (230, 0x7fff7d32bb30));
    }

    #[test]
    fn refuses_torn_lines_wherever_they_are_cut() {
        let line = "230 0x1 0x1 0x7fff7d32bb30 0x0 0x0 0x0 0x7fff7d32bb18 0x7f30424ed503\n";
        for whole in [line, "running\n", "-1 0x7ffd0b5dd8f0 0x7f1c1f2c5d2a\n"] {
            for length in 0..whole.len() {
                assert!(parse(&whole[..length]).is_err(), "{:?}", &whole[..length]);
            }
        }
        for odd in ["-2 0x1 0x2\n", "230 1 1\n", "0x1 0x1 0x1\n", "\n", "-1\n"] {
            assert!(parse(odd).is_err(), "{odd:?}");
        }
    }

    #[test]
    fn only_futex_operations_that_wait_are_waits_at_the_word() {
        let futex = |operation: i32| call(libc::SYS_futex, [0x7f00_1234, operation as u64, 2]);
        let private = libc::FUTEX_PRIVATE_FLAG;
        for operation in [
            libc::FUTEX_WAIT,
            libc::FUTEX_WAIT | private,
            libc::FUTEX_WAIT_BITSET | private | libc::FUTEX_CLOCK_REALTIME,
            libc::FUTEX_LOCK_PI | private,
            libc::FUTEX_LOCK_PI2,
            libc::FUTEX_WAIT_REQUEUE_PI,
        ] {
            assert_eq!(futex(operation), Wait::Futex(0x7f00_1234), "{operation}");
        }
        for operation in [libc::FUTEX_WAKE | private, libc::FUTEX_REQUEUE] {
            assert_eq!(futex(operation), Wait::Known(Kind::Other), "{operation}");
        }
        assert_eq!(call(SYS_FUTEX_WAIT, [16, 0, 0]), Wait::Futex(16));
        assert_eq!(
            call(libc::SYS_futex_waitv, [16, 1, 0]),
            Wait::Known(Kind::Futex)
        );
    }

    #[test]
    fn calls_have_their_kinds() {
        let known = |number| call(number, [5, 0, 0]);
        assert_eq!(known(libc::SYS_fdatasync), Wait::Known(Kind::Disk));
        assert_eq!(known(libc::SYS_recvfrom), Wait::Known(Kind::Network));
        assert_eq!(known(libc::SYS_ppoll), Wait::Known(Kind::Poll));
        assert_eq!(known(libc::SYS_clock_nanosleep), Wait::Known(Kind::Sleep));
        assert_eq!(known(libc::SYS_wait4), Wait::Known(Kind::Child));
        assert_eq!(known(libc::SYS_flock), Wait::Known(Kind::Other));
        assert_eq!(known(libc::SYS_read), Wait::Descriptor(5));
        assert_eq!(known(100_000), Wait::Known(Kind::Other));
    }

    #[test]
    fn a_32_bit_programs_numbers_are_not_ours() {
        let text = "240 0x1 0x80 0x2 0x0 0x0 0x0 0xffd0b5d0 0xf7f0a579\n";
        let Doing::Call(call) = parse(text).unwrap() else {
            panic!()
        };
        assert_eq!(call.wait(), Wait::Known(Kind::Other));
    }
}
