//! The timer of an event loop.
//!
//! It stays set while the thread waits for other events. A timeout of each wait would be set and cleared in each:
//! on a virtual machine the clock that wakes belongs to the hypervisor, and to set it takes longer than a system call.

use rustix::event::{Timespec, epoll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

/// A time on CLOCK_MONOTONIC at which an epoll reports an event, once.
#[derive(Debug)]
pub struct Alarm {
    timer: OwnedFd,
    /// The time that it is set for, until it has rung.
    due_ns: Option<u64>,
}

impl Alarm {
    /// An alarm that is not set; this epoll reports it with this event data.
    pub fn on(epoll: impl AsFd, data: u64) -> Result<Self, Errno> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        // Edge-triggered: nobody has to read the timer after it has woken the thread.
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(epoll, &timer, epoll::EventData::new_u64(data), flags)?;
        Ok(Self {
            timer,
            due_ns: None,
        })
    }

    /// Whether it is set for this time.
    pub fn is_set_for(&self, due_ns: u64) -> bool {
        self.due_ns == Some(due_ns)
    }

    /// Its event has come: it is no longer set.
    pub fn has_rung(&mut self) {
        self.due_ns = None;
    }

    /// Sets it for a time, and for no other.
    pub fn set(&mut self, due_ns: u64) -> Result<(), Errno> {
        let once = Itimerspec {
            it_interval: timespec(0),
            // 0 would set no alarm.
            it_value: timespec(due_ns.clamp(1, i64::MAX as u64)),
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once)?;
        self.due_ns = Some(due_ns);
        Ok(())
    }
}

pub const fn timespec(ns: u64) -> Timespec {
    Timespec {
        tv_sec: (ns / 1_000_000_000) as i64,
        tv_nsec: (ns % 1_000_000_000) as i64,
    }
}
