//! The server from its start to its end, and what each of its engines runs.

use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::time::Duration;

use concurve_engines::{Engine, Event, Mode, Plan, Service, Start};
use concurve_reporter::Reporter;
use rustix::net::sockopt::set_socket_reuseaddr;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use crate::engine;
use crate::error::Error;
use crate::log;
use crate::net::network::{QueuePath, RequestPath};
use crate::net::run_queue::RunQueue;
use crate::net::sockets::Entrance;
use crate::net::threads::{SideThread, StopSignal, run_together};
use crate::net::{io_thread, listener};
use crate::options::{EngineKind, ServerOptions};
use crate::records;
use crate::report;
use crate::state::SharedState;

/// After so many deaths in a row, each within a second of the start, the server ends.
const QUICK_DEATHS_MAX: u32 = 5;

/// How long engine processes may take to stop: the record engine writes its changed pages.
const STOP_WITHIN: Duration = Duration::from_secs(60);

/// Serves until SIGTERM or SIGINT.
///
/// # Errors
/// If the server cannot start, or cannot go on.
pub fn serve(options: ServerOptions) -> Result<(), Error> {
    if let Some(records) = &options.records
        && let Some(to) = &records.salvage
    {
        return records::save(records, to);
    }
    options.check_memory(concurve_engines::memory::machine_bytes())?;
    concurve_records::limit_memory(concurve_engines::memory::left);
    let reporter = Reporter::from_environment()?;
    let (listener, port) = bind(&options)?;
    let plan = Plan {
        mode: match options.threads.engine_kind() {
            EngineKind::Threads => Mode::Threads,
            EngineKind::Processes => Mode::Processes,
        },
        engines: options.threads.engines() as u32,
        memory_bytes: options.shared_memory_bytes,
        memory_remedy: "raise --shared-memory",
        quick_deaths_max: QUICK_DEATHS_MAX,
        stop_within: STOP_WITHIN,
    };
    let server = Server {
        options,
        listener,
        port,
        reporter,
    };
    Ok(concurve_engines::serve(&plan, &server)?)
}

/// Takes the port. Clients are refused until [`listen`].
fn bind(options: &ServerOptions) -> Result<(TcpListener, u16), Error> {
    let address = options.address;
    let bound = bind_socket(address).map_err(|source| Error::Listen {
        address,
        source: source.into(),
    })?;
    let listener = TcpListener::from(bound);
    let local = listener.local_addr();
    let port = local.map_err(Error::io("read the listener's port"))?.port();
    Ok((listener, port))
}

fn bind_socket(address: SocketAddr) -> rustix::io::Result<OwnedFd> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    set_socket_reuseaddr(&socket, true)?;
    rustix::net::bind(&socket, &address)?;
    Ok(socket)
}

/// Lets clients connect: when the service is open, because until then none could be answered.
fn listen(listener: &TcpListener, address: SocketAddr) -> Result<(), Error> {
    // With the longest backlog that the kernel allows: many clients of a trial connect together, and a
    // client that finds the usual backlog of 128 full retries only after a second.
    let backlog = nix::sys::socket::Backlog::MAXALLOWABLE;
    let listens = nix::sys::socket::listen(listener, backlog);
    listens.map_err(|source| Error::Listen {
        address,
        source: source.into(),
    })
}

/// The server, which the engines run as a service.
#[derive(Debug)]
struct Server {
    options: ServerOptions,
    listener: TcpListener,
    port: u16,
    reporter: Reporter,
}

impl Service for Server {
    type Shared = SharedState;

    fn open(&self, start: Start) -> Result<SharedState, String> {
        let state = SharedState::open(self.options.clone(), self.port, start).map_err(text)?;
        listen(&self.listener, self.options.address).map_err(text)?;
        report::facts(&self.reporter, &state).map_err(text)?;
        Ok(state)
    }

    fn run(&self, state: &SharedState, engine: &Engine) -> Result<(), String> {
        state.services.when_stopped(engine.stopper());
        if engine.predecessors > 0 {
            state.end_sessions_of(engine.number as usize - 1);
        }
        let served = self.serve(state, engine);
        // Engines are asked to stop, too, if a service has: then its reason is that of the server.
        state.services.check().and(served).map_err(text)
    }

    fn close(&self, state: SharedState) -> Result<(), String> {
        state.network.clients.incidents.tell_all();
        report::end(&self.reporter, &state).map_err(text)?;
        state.services.close().map_err(text)
    }

    fn on_event(&self, event: &Event) {
        match event {
            Event::Ready { generation: 1 } => {
                if let Err(error) = report::ready(&self.reporter, &self.options, self.port) {
                    log::tell(error);
                }
            }
            Event::Ready { generation } => {
                log::tell(format_args!("engines restarted, generation {generation}"));
            }
            Event::Replaced { engine, why } => {
                log::tell(format_args!("{why}; there is a new engine {engine}"));
            }
            Event::Stopped { why, within } => log::tell(format_args!(
                "{why}, and answers no client; it is killed unless it continues \
                 (SIGCONT) within {} s",
                within.as_secs()
            )),
            Event::Lost { why } => {
                log::tell(format_args!("{why}; all engines are ended"));
            }
        }
    }
}

fn text(error: impl Into<Error>) -> String {
    error.into().to_string()
}

impl Server {
    /// Runs one engine by the thread model.
    fn serve(&self, state: &SharedState, engine: &Engine) -> Result<(), Error> {
        let number = engine.number as usize - 1;
        let stop = StopSignal::of(engine);
        let is_first = number == 0;
        let _service_threads = match is_first {
            true => state.services.start_threads()?,
            false => None,
        };
        match &state.network.path {
            RequestPath::RunQueue(path) => {
                let side = match is_first {
                    true => self.queue_threads(state, path, &stop),
                    false => Vec::new(),
                };
                let run = || engine::serve_queue(state, path, number, &stop);
                run_together(side, &stop, run)
            }
            RequestPath::SocketThreads => {
                let side = match is_first {
                    true => vec![self.listener_thread(state, &stop)],
                    false => Vec::new(),
                };
                let run = || engine::serve_sockets(state, None, number, &stop);
                run_together(side, &stop, run)
            }
            RequestPath::SocketProcesses(handover) => {
                let entrance = Entrance {
                    listener: &self.listener,
                    handover,
                };
                engine::serve_sockets(state, Some(entrance), number, &stop)
            }
        }
    }

    /// The threads that engines with a run queue need: I/O threads and the disk thread.
    fn queue_threads<'a>(
        &'a self,
        state: &'a SharedState,
        path: &'a QueuePath,
        stop: &'a StopSignal,
    ) -> Vec<SideThread<'a>> {
        let meters = state.monitoring.meters.io_threads.iter().enumerate();
        let io_threads = meters.map(|(number, meter)| SideThread {
            name: format!("io-{}", number + 1),
            run: Box::new(move || io_thread::run(state.socket_context(number, meter), path, stop)),
        });
        let disk = path.disk.as_ref().map(|queue| SideThread {
            name: "disk".to_owned(),
            run: Box::new(move || engine::serve_disk_queue(state, queue, stop)),
        });
        let listener = self.listener_thread(state, stop);
        io_threads.chain(disk).chain([listener]).collect()
    }

    fn listener_thread<'a>(
        &'a self,
        state: &'a SharedState,
        stop: &'a StopSignal,
    ) -> SideThread<'a> {
        SideThread {
            name: "listener".to_owned(),
            run: Box::new(|| {
                let ended = listener::run(&state.network, &self.listener, stop);
                // The listener has returned, because the engine is to stop. Threads that sleep at a
                // queue must be woken to notice it.
                state.network.queues().for_each(RunQueue::wake_all);
                ended
            }),
        }
    }
}
