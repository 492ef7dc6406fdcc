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
    stack_pointer: u64,
    instruction_pointer: u64,
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
    /// A lock on a file.
    FileLock,
    /// A change of the address space, or a page fault that is held up by one.
    Memory,
    /// A wake-up by another thread or process: at an epoll instance that watches no socket.
    WakeUp,
    Other,
}

/// What a call says of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// At the futex word of this address. `expected` is the value that it must have, where the wait is a
    /// plain one, as those of mutexes and barriers are: 2 in a mutex, the number of the round in a barrier.
    Futex {
        word: u64,
        expected: Option<u32>,
    },
    /// For this descriptor, whose kind must be determined.
    Descriptor(u32),
    /// For what the epoll instance of this descriptor watches.
    Epoll(u32),
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
        (0.., &[a, b, c, d, e, f, stack_pointer, instruction_pointer]) => Ok(Doing::Call(Call {
            number,
            arguments: [a, b, c, d, e, f],
            stack_pointer,
            instruction_pointer,
        })),
        _ => Err(wrong()),
    }
}

fn hexadecimal(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

impl Call {
    /// The stack is below 4 GiB: a 32-bit program, whose calls have other numbers.
    fn is_narrow(&self) -> bool {
        self.stack_pointer <= u64::from(u32::MAX)
    }

    pub fn stack_pointer(&self) -> u64 {
        self.stack_pointer
    }

    /// Where the thread continues when the call returns.
    pub fn instruction_pointer(&self) -> u64 {
        self.instruction_pointer
    }

    /// The name of the call, of those that say which part of the kernel a thread waits for.
    pub fn name(&self) -> Option<&'static str> {
        let found = NAMES.iter().find(|(number, _)| *number == self.number);
        found.filter(|_| !self.is_narrow()).map(|(_, name)| *name)
    }

    /// What the thread waits for, by the numbers of this architecture.
    pub fn wait(&self) -> Wait {
        if self.is_narrow() {
            return Wait::Known(Kind::Other);
        }
        let first = self.arguments[0];
        match self.number {
            libc::SYS_futex if waits(self.arguments[1]) => Wait::Futex {
                word: first,
                expected: is_plain(self.arguments[1]).then_some(self.arguments[2] as u32),
            },
            SYS_FUTEX_WAIT => Wait::Futex {
                word: first,
                expected: None,
            },
            // Waits at many words at once, so no single address applies.
            libc::SYS_futex_waitv => Wait::Known(Kind::Futex),
            libc::SYS_read | libc::SYS_write | libc::SYS_readv | libc::SYS_writev => {
                Wait::Descriptor(first as u32)
            }
            libc::SYS_fcntl if locks(self.arguments[1]) => Wait::Known(Kind::FileLock),
            libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => Wait::Epoll(first as u32),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_epoll_wait => Wait::Epoll(first as u32),
            number => Wait::Known(kind(number)),
        }
    }
}

/// What a thread waits for that is in no system call, by the state in its `stat` and by the function of
/// the kernel that it waits in, if that is readable. A page fault waits uninterruptibly: for the disk, or
/// for the lock of the address space. A stopped thread waits interruptibly.
pub fn outside(state: char, channel: Option<&str>) -> Kind {
    let of_memory = |name: &str| {
        ["mm_", "fault", "rwsem", "vma"]
            .iter()
            .any(|it| name.contains(it))
    };
    let of_disk = |name: &str| {
        ["folio", "page_", "io_", "swap"]
            .iter()
            .any(|it| name.contains(it))
    };
    match (state, channel) {
        ('D', Some(name)) if of_memory(name) && !of_disk(name) => Kind::Memory,
        ('D', _) => Kind::Disk,
        _ => Kind::Other,
    }
}

/// Calls that change the address space, files' names and locks, and tasks, or write to files, and the one
/// that waits for requests of any kind.
const NAMES: [(i64, &str); 25] = [
    (libc::SYS_mmap, "mmap"),
    (libc::SYS_munmap, "munmap"),
    (libc::SYS_mremap, "mremap"),
    (libc::SYS_mprotect, "mprotect"),
    (libc::SYS_madvise, "madvise"),
    (libc::SYS_brk, "brk"),
    (libc::SYS_flock, "flock"),
    (libc::SYS_fcntl, "fcntl"),
    (libc::SYS_fsync, "fsync"),
    (libc::SYS_fdatasync, "fdatasync"),
    (libc::SYS_ftruncate, "ftruncate"),
    (libc::SYS_fallocate, "fallocate"),
    (libc::SYS_pwrite64, "pwrite64"),
    (libc::SYS_openat, "openat"),
    (libc::SYS_close, "close"),
    (libc::SYS_unlinkat, "unlinkat"),
    (libc::SYS_renameat2, "renameat2"),
    (libc::SYS_mkdirat, "mkdirat"),
    (libc::SYS_getdents64, "getdents64"),
    (libc::SYS_clone, "clone"),
    (libc::SYS_clone3, "clone3"),
    (libc::SYS_execve, "execve"),
    (libc::SYS_exit_group, "exit_group"),
    (libc::SYS_statx, "statx"),
    (libc::SYS_io_uring_enter, "io_uring_enter"),
];

/// `futex_wait` of Linux 6.7, the same number on every architecture.
const SYS_FUTEX_WAIT: libc::c_long = 455;
// libc lacks it.
#[cfg(target_arch = "x86_64")]
const SYS_IO_PGETEVENTS: libc::c_long = 333;
#[cfg(not(target_arch = "x86_64"))]
const SYS_IO_PGETEVENTS: libc::c_long = 292;

/// Whether a futex operation waits as mutexes and barriers do. Conditions and semaphores wait with a mask.
fn is_plain(operation: u64) -> bool {
    operation as i32 & !libc::FUTEX_PRIVATE_FLAG == libc::FUTEX_WAIT
}

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

/// Whether a command of fcntl waits for a lock.
fn locks(command: u64) -> bool {
    matches!(command as i32, libc::F_SETLKW | libc::F_OFD_SETLKW)
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
        | SYS_IO_PGETEVENTS => Kind::Disk,
        libc::SYS_sendto
        | libc::SYS_sendmsg
        | libc::SYS_sendmmsg
        | libc::SYS_recvfrom
        | libc::SYS_recvmsg
        | libc::SYS_recvmmsg
        | libc::SYS_accept
        | libc::SYS_accept4
        | libc::SYS_connect => Kind::Network,
        // A ring holds requests of any kind: an event loop waits there for sockets.
        libc::SYS_ppoll | libc::SYS_pselect6 | libc::SYS_io_uring_enter => Kind::Poll,
        libc::SYS_flock => Kind::FileLock,
        libc::SYS_mmap
        | libc::SYS_munmap
        | libc::SYS_mremap
        | libc::SYS_mprotect
        | libc::SYS_madvise
        | libc::SYS_brk => Kind::Memory,
        libc::SYS_nanosleep | libc::SYS_clock_nanosleep => Kind::Sleep,
        // vfork waits for the exec of its child.
        libc::SYS_wait4 | libc::SYS_waitid | libc::SYS_clone | libc::SYS_clone3 => Kind::Child,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_vfork => Kind::Child,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_poll | libc::SYS_select => Kind::Poll,
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
        assert_eq!(call.stack_pointer(), 0x7fff7d32bb18);
        assert_eq!(call.instruction_pointer(), 0x7f30424ed503);
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
            let word = 0x7f00_1234;
            let is_plain = matches!(operation & !private, libc::FUTEX_WAIT);
            let expected = is_plain.then_some(2);
            let at = Wait::Futex { word, expected };
            assert_eq!(futex(operation), at, "{operation}");
        }
        for operation in [libc::FUTEX_WAKE | private, libc::FUTEX_REQUEUE] {
            assert_eq!(futex(operation), Wait::Known(Kind::Other), "{operation}");
        }
        assert_eq!(
            call(SYS_FUTEX_WAIT, [16, 7, 0]),
            Wait::Futex {
                word: 16,
                expected: None
            }
        );
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
        assert_eq!(known(libc::SYS_io_uring_enter), Wait::Known(Kind::Poll));
        assert_eq!(known(libc::SYS_clock_nanosleep), Wait::Known(Kind::Sleep));
        assert_eq!(known(libc::SYS_wait4), Wait::Known(Kind::Child));
        assert_eq!(known(libc::SYS_flock), Wait::Known(Kind::FileLock));
        assert_eq!(known(libc::SYS_munmap), Wait::Known(Kind::Memory));
        let named = |number: i64| {
            let text = format!("{number} 0x1 0x1 0x1 0x0 0x0 0x0 0x7fff7d32bb18 0x7f30424ed503\n");
            match parse(&text).unwrap() {
                Doing::Call(call) => call.name(),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(named(libc::SYS_munmap), Some("munmap"));
        assert_eq!(named(libc::SYS_io_uring_enter), Some("io_uring_enter"));
        assert_eq!(named(libc::SYS_futex), None);
        let control = |command: i32| call(libc::SYS_fcntl, [5, command as u64, 0]);
        assert_eq!(control(libc::F_SETLKW), Wait::Known(Kind::FileLock));
        assert_eq!(control(libc::F_SETLK), Wait::Known(Kind::Other));
        assert_eq!(known(libc::SYS_read), Wait::Descriptor(5));
        assert_eq!(known(libc::SYS_epoll_pwait), Wait::Epoll(5));
        assert_eq!(known(100_000), Wait::Known(Kind::Other));
    }

    #[test]
    fn a_page_fault_waits_for_the_disk_or_for_the_address_space() {
        assert_eq!(outside('D', None), Kind::Disk);
        assert_eq!(outside('D', Some("folio_wait_bit_common")), Kind::Disk);
        assert_eq!(outside('D', Some("lock_mm_and_find_vma")), Kind::Memory);
        assert_eq!(outside('D', Some("do_user_addr_fault")), Kind::Memory);
        assert_eq!(outside('D', Some("filemap_fault_io_wait")), Kind::Disk);
        assert_eq!(outside('T', Some("do_signal_stop")), Kind::Other);
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
