//! The server from its start to its end.

use std::net::TcpListener;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::JoinHandle;
use std::time::Duration;

use concurve_wire::reporter::Reporter;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::error::{Error, While};
use crate::hall::Hall;
use crate::net::inbox::Inbox;
use crate::net::io_thread::{self, IoInbox, IoThread};
use crate::net::listener::Listener;
use crate::net::poller::Waker;
use crate::net::worker::{self, WorkerInbox};
use crate::report;
use crate::settings::{Execution, Settings};

/// How often it is looked whether a thread has given up.
const LOOK: Duration = Duration::from_millis(100);

/// Serves until SIGTERM or SIGINT.
pub fn serve(settings: Settings) -> Result<(), Error> {
    let signals = block_signals()?;
    let reporter = Reporter::from_environment()?;
    let (listener, port) = listen(&settings)?;
    let hall = Arc::new(Hall::new(settings, port)?);
    let running = Running::start(&hall, listener)?;
    report::ready(&reporter, &hall)?;
    wait_for_end(&signals, &hall)?;
    running.stop(&hall)?;
    report::end(&reporter, &hall)?;
    let fatal = Arc::into_inner(hall).and_then(Hall::end);
    fatal.map_or(Ok(()), Err)
}

/// Before other threads start: they inherit the mask.
fn block_signals() -> Result<SignalFd, Error> {
    let mut set = SigSet::empty();
    set.add(Signal::SIGTERM);
    set.add(Signal::SIGINT);
    set.thread_block().when(|| "block SIGTERM".to_owned())?;
    SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
        .when(|| "open a signalfd".to_owned())
}

fn listen(settings: &Settings) -> Result<(TcpListener, u16), Error> {
    let address = settings.address;
    let listener = TcpListener::bind(address).when(|| format!("listen on {address}"))?;
    // Again, with as long a queue as the kernel allows: many clients come at once in a trial, and
    // one that finds the usual queue of 128 full waits a second before it tries again.
    nix::sys::socket::listen(&listener, nix::sys::socket::Backlog::MAXALLOWABLE)
        .when(|| format!("lengthen the queue of {address}"))?;
    listener
        .set_nonblocking(true)
        .when(|| "set the listener to non-blocking".to_owned())?;
    let port = listener
        .local_addr()
        .when(|| "read the listener's port".to_owned())?
        .port();
    Ok((listener, port))
}

fn wait_for_end(signals: &SignalFd, hall: &Hall) -> Result<(), Error> {
    let timeout = PollTimeout::try_from(LOOK).unwrap_or(PollTimeout::MAX);
    while !hall.stop.load(Relaxed) {
        let mut descriptors = [PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
        match poll(&mut descriptors, timeout) {
            Ok(0) | Err(nix::errno::Errno::EINTR) => {}
            Ok(_) => break,
            Err(error) => return Err(error).when(|| "wait for signals".to_owned()),
        }
    }
    Ok(())
}

/// The threads, and what wakes them.
struct Running {
    threads: Vec<(String, JoinHandle<()>)>,
    listener: Waker,
    io_threads: Vec<Arc<IoInbox>>,
}

impl Running {
    fn start(hall: &Arc<Hall>, listener: TcpListener) -> Result<Self, Error> {
        let opened: Result<Vec<_>, Error> = (0..hall.settings.io_threads)
            .map(|_| io_thread::open())
            .collect();
        let (pollers, io_threads): (Vec<_>, Vec<_>) = opened?.into_iter().unzip();
        let (listener, waker) = Listener::new(listener)?;
        let mut running = Self {
            threads: Vec::new(),
            listener: waker,
            io_threads,
        };
        let worker = match hall.settings.execution {
            Execution::Worker => Some(running.start_worker(hall)?),
            Execution::Inline => None,
        };
        for (number, poller) in pollers.into_iter().enumerate() {
            let inbox = Arc::clone(&running.io_threads[number]);
            let thread = IoThread::new(Arc::clone(hall), number, poller, inbox, worker.clone());
            running.spawn(format!("io-{}", number + 1), hall, |_| thread.run())?;
        }
        let io_threads = running.io_threads.clone();
        running.spawn("listener".to_owned(), hall, move |hall| {
            listener.run(hall, &io_threads)
        })?;
        Ok(running)
    }

    /// Its inbox knows the thread that is to be woken, so it is made in that thread.
    fn start_worker(&mut self, hall: &Arc<Hall>) -> Result<Arc<WorkerInbox>, Error> {
        let (send, receive) = std::sync::mpsc::channel();
        let io_threads = self.io_threads.clone();
        self.spawn("worker".to_owned(), hall, move |hall| {
            let inbox = Arc::new(Inbox::new(std::thread::current()));
            if send.send(Arc::clone(&inbox)).is_ok() {
                worker::run(hall, &inbox, &io_threads);
            }
            Ok(())
        })?;
        receive
            .recv()
            .map_err(|_| Error::Panicked("worker".to_owned()))
    }

    fn spawn(
        &mut self,
        name: String,
        hall: &Arc<Hall>,
        run: impl FnOnce(&Hall) -> Result<(), Error> + Send + 'static,
    ) -> Result<(), Error> {
        let (shared, thread_name) = (Arc::clone(hall), name.clone());
        let handle = std::thread::Builder::new()
            .name(name.clone())
            .spawn(move || {
                // A thread that panics takes the server with it: half a server serves nobody.
                let guard = StopOnPanic(Arc::clone(&shared), thread_name);
                if let Err(error) = run(&shared) {
                    shared.fail(error);
                }
                drop(guard);
            })
            .when(|| format!("start the thread {name}"))?;
        self.threads.push((name, handle));
        Ok(())
    }

    /// Stops all threads and waits for them.
    fn stop(self, hall: &Hall) -> Result<(), Error> {
        hall.stop.store(true, Relaxed);
        self.listener.wake();
        for inbox in &self.io_threads {
            inbox.nudge();
        }
        for (name, handle) in self.threads {
            handle.thread().unpark();
            handle.join().map_err(|_| Error::Panicked(name))?;
        }
        Ok(())
    }
}

struct StopOnPanic(Arc<Hall>, String);

impl Drop for StopOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail(Error::Panicked(self.1.clone()));
        }
    }
}
