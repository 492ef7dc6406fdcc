//! The end of a process as soon as any of its threads panics.
//!
//! A thread that has ended answers nobody, and its latches stay broken: those who depend on it would wait for
//! ever. Whether that is noticed must not depend on what the thread held.
#![allow(unsafe_code)]

use std::sync::atomic::AtomicI32;
use std::sync::atomic::Ordering::Relaxed;

/// The exit status after a panic: of the program, or of a process that it has forked.
static STATUS: AtomicI32 = AtomicI32::new(1);

/// From now on a panic in any thread, of this process or of one that it forks, ends that process at once.
/// Standard error says which thread it was, and where. A keeper of engines takes it for the death of an
/// engine; a program whose engines are threads ends with the status 1.
pub fn end_at_panics(program: &'static str) {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        usual(panic);
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("without a name");
        eprintln!(
            "{program}: the thread {name} panicked, so its process ends; this is a defect: report it"
        );
        // SAFETY: ends the process, without destructors: they might wait for the thread.
        unsafe { libc::_exit(STATUS.load(Relaxed)) }
    }));
}

/// Sets the exit status of this process.
pub(crate) fn set_status(status: i32) {
    STATUS.store(status, Relaxed);
}
