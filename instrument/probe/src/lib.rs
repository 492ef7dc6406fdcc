//! What Linux reports about processes, threads and the machine, and the controls that it offers.
//!
//! Parsers are pure functions of text. The system calls that need `unsafe` (fork and exec,
//! `perf_event_open`, netlink, `wait4`) are in this crate, behind safe functions, so that no other
//! crate needs `unsafe` for them.

pub mod cgroup;
pub mod control;
pub mod core_speed;
pub mod cpu_list;
pub mod cpu_quota;
pub mod descriptor;
pub mod elf_sections;
mod error;
pub mod frequency;
pub mod golang;
pub mod huge_pages;
pub mod listening;
pub mod open_files;
pub mod others;
pub mod perf;
pub mod pidfd;
pub mod pipe;
pub mod proc_fs;
pub mod proc_stat;
pub mod process;
pub mod psi;
pub mod schedstat;
pub mod signals;
pub mod spawn;
pub mod syscall;
pub mod task;
pub mod taskstats;

pub use error::{ProbeError, Result, unless_gone};
