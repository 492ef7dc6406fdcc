//! Ending early: Ctrl-C, SIGTERM, or a thread that failed.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::process;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use concurve_clock::monotonic_ns;
use nix::sys::eventfd::EventFd;
use nix::sys::signal::{SigSet, Signal};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::output::print;

/// A request to all threads to end. Threads that wait for descriptors add this one: it becomes
/// readable, and stays so.
#[derive(Debug, Clone)]
pub struct Stop(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    event: EventFd,
    /// The same for threads that check it often.
    is_set: AtomicBool,
    /// The signal that caused it; 0 if none did.
    signal: AtomicI32,
    /// What a second signal prints.
    at_second: Mutex<Option<String>>,
}

impl Stop {
    pub fn new() -> io::Result<Self> {
        Ok(Self(Arc::new(Inner {
            event: EventFd::new()?,
            is_set: AtomicBool::new(false),
            signal: AtomicI32::new(0),
            at_second: Mutex::new(None),
        })))
    }

    /// Stops at SIGINT and SIGTERM; a second one ends the process at once. Must be called before any
    /// other thread is started: threads and processes that are started later inherit the signal mask
    /// and leave the signals to this thread.
    pub fn on_signals(&self) -> io::Result<()> {
        let signals = SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM]);
        signals.thread_block()?;
        let stop = self.clone();
        thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || {
                while let Ok(signal) = signals.wait() {
                    let number = signal as i32;
                    if stop.0.signal.swap(number, Ordering::SeqCst) != 0 {
                        stop.end_process(128 + number);
                    }
                    stop.now();
                }
            })?;
        Ok(())
    }

    /// Lets a second signal print this before it ends the process: figures that wait for what is at work.
    pub fn print_at_second(&self, text: Option<String>) {
        *self
            .0
            .at_second
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = text;
    }

    fn end_process(&self, code: i32) -> ! {
        // Held until the end: nobody else prints the same.
        let text = self
            .0
            .at_second
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let _ = text.as_deref().map(print);
        process::exit(code)
    }

    pub fn now(&self) {
        self.0.is_set.store(true, Ordering::SeqCst);
        self.0
            .event
            .write(1)
            .expect("the counter of the eventfd does not overflow");
    }

    /// The signal that caused it, if one did.
    pub fn signal(&self) -> Option<i32> {
        Some(self.0.signal.load(Ordering::SeqCst)).filter(|it| *it != 0)
    }

    /// Waits until a time on CLOCK_MONOTONIC; `true` if the run is stopped before.
    pub fn wait_until(&self, at_ns: u64) -> bool {
        let ns = at_ns.saturating_sub(monotonic_ns());
        let timeout = Timespec {
            tv_sec: (ns / 1_000_000_000) as i64,
            tv_nsec: (ns % 1_000_000_000) as i64,
        };
        let mut descriptors = [PollFd::new(&self.0.event, PollFlags::IN)];
        matches!(poll(&mut descriptors, Some(&timeout)), Ok(ready) if ready > 0)
    }

    pub fn is_set(&self) -> bool {
        self.0.is_set.load(Ordering::Relaxed)
    }
}

impl AsFd for Stop {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.event.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waiting_thread_is_woken() {
        let stop = Stop::new().unwrap();
        assert!(!stop.is_set() && !stop.wait_until(monotonic_ns() + 1_000_000));
        let other = stop.clone();
        let waiting = thread::spawn(move || other.wait_until(u64::MAX / 4));
        stop.now();
        assert!(waiting.join().unwrap() && stop.is_set());
        assert_eq!(stop.signal(), None);
    }
}
