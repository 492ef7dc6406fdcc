//! Engines that are threads.

use std::any::Any;
use std::os::fd::AsFd;
use std::sync::mpsc;
use std::thread;

use concurve_latch::set_engine_of_thread;
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::signal::Signal;

use crate::error::EnginesError;
use crate::memory;
use crate::service::{Engine, Event, Plan, Service, Start};
use crate::signals::Signals;
use crate::stop::Stop;

/// How an engine ended, or its panic.
type Ended = (u32, Result<Result<(), String>, Box<dyn Any + Send>>);

pub fn serve<S: Service>(plan: &Plan, service: &S) -> Result<(), EnginesError> {
    let signals = Signals::block(&[Signal::SIGTERM, Signal::SIGINT])?;
    memory::open(plan.memory_bytes, plan.memory_remedy)
        .map_err(EnginesError::system(&memory::reserving(plan.memory_bytes)))?;
    let shared = service
        .open(Start { generation: 1 })
        .map_err(EnginesError::Service)?;
    run(plan, service, &shared, &signals)?;
    service.close(shared).map_err(EnginesError::Service)
}

fn run<S: Service>(
    plan: &Plan,
    service: &S,
    shared: &S::Shared,
    signals: &Signals,
) -> Result<(), EnginesError> {
    let stop = Stop::new()?;
    let (send, ends) = mpsc::channel::<Ended>();
    let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
    let ended = EventFd::from_flags(flags).map_err(EnginesError::system("open an eventfd"))?;
    thread::scope(|scope| {
        for number in 1..=plan.engines {
            let engine = Engine {
                number,
                predecessors: 0,
                stop: stop.clone(),
            };
            let (send, ended) = (send.clone(), &ended);
            let work = move || {
                set_engine_of_thread(number);
                let work = std::panic::AssertUnwindSafe(|| service.run(shared, &engine));
                let _ = send.send((number, std::panic::catch_unwind(work)));
                let _ = ended.write(1);
            };
            let thread = thread::Builder::new().name(format!("engine-{number}"));
            let started = thread
                .spawn_scoped(scope, work)
                .map_err(EnginesError::system("start an engine"));
            if let Err(error) = started {
                stop.request();
                return Err(error);
            }
        }
        service.on_event(&Event::Ready { generation: 1 });
        let ended_all = supervise(plan.engines, &stop, &ends, &ended, signals);
        stop.request();
        ended_all
    })
}

/// Waits until all engines have ended; stops all when one fails.
fn supervise(
    engines: u32,
    stop: &Stop,
    ends: &mpsc::Receiver<Ended>,
    ended: &EventFd,
    signals: &Signals,
) -> Result<(), EnginesError> {
    let mut left = engines;
    while left > 0 {
        signals.wait(Some(ended.as_fd()), None)?;
        if signals.take_end_request()? {
            stop.request();
        }
        // Before the ends are read: each engine sends its end before it writes to `ended`.
        let _ = ended.read();
        while let Ok((number, end)) = ends.try_recv() {
            left -= 1;
            match end {
                Ok(Ok(())) => {}
                Ok(Err(text)) => return Err(EnginesError::Service(text)),
                Err(_) => return Err(EnginesError::Panicked(number)),
            }
        }
    }
    Ok(())
}
