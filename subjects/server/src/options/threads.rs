//! Which threads and processes the server has, and what each of them does.

use super::levels::{EngineKind, Execution, Replies};
use crate::error::Error;

/// Which threads read, execute, wait for the disk and write replies. Chosen once, at the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadModel {
    /// I/O threads read requests into a run queue, from which engine threads take and execute them.
    RunQueue {
        engines: usize,
        io_threads: usize,
        replies: Replies,
        /// A separate thread waits for the disk.
        has_disk_thread: bool,
    },
    /// Engines are threads. A listener assigns each client to an engine, which reads, executes and
    /// answers the requests of that client.
    SocketThreads { engines: usize },
    /// Engines are processes, each of which also accepts clients.
    SocketProcesses { engines: usize },
}

/// What the command line says about threads.
#[derive(Debug, Clone, Copy)]
pub(super) struct ThreadArgs {
    pub kind: EngineKind,
    pub execution: Option<Execution>,
    pub replies: Option<Replies>,
    pub engines: Option<u16>,
    pub io_threads: Option<u16>,
}

impl ThreadModel {
    /// The thread model that results from the options. `needs_disk`: replies wait for the disk.
    pub(super) fn new(args: ThreadArgs, needs_disk: bool) -> Result<Self, Error> {
        let count = |given: Option<u16>| usize::from(given.unwrap_or(1));
        let usage = |text: &str| Err(Error::Usage(text.to_owned()));
        let execution = args.execution.unwrap_or(match args.kind {
            EngineKind::Threads => Execution::Worker,
            EngineKind::Processes => Execution::Inline,
        });
        match (args.kind, execution) {
            (EngineKind::Processes, Execution::Worker) => usage(
                "--execution worker is not for --engines processes: a request is executed by the \
                 engine that owns its socket; leave it out",
            ),
            (_, Execution::Inline) if args.replies.is_some() => usage(
                "--replies is for --execution worker: with inline, the engine that executes also \
                 answers; leave it out",
            ),
            (EngineKind::Processes, Execution::Inline) if args.io_threads.is_some() => usage(
                "--io-threads is not for --engines processes: each engine reads and answers \
                 itself; say --engine-count",
            ),
            (EngineKind::Threads, Execution::Inline) if args.engines.is_some() => usage(
                "--engine-count is not for --execution inline: each I/O thread is an engine; say \
                 --io-threads",
            ),
            (EngineKind::Threads, Execution::Worker) => Ok(ThreadModel::RunQueue {
                engines: count(args.engines),
                io_threads: count(args.io_threads),
                replies: args.replies.unwrap_or(Replies::IoThread),
                has_disk_thread: needs_disk,
            }),
            (EngineKind::Threads, Execution::Inline) => Ok(ThreadModel::SocketThreads {
                engines: count(args.io_threads),
            }),
            (EngineKind::Processes, Execution::Inline) => Ok(ThreadModel::SocketProcesses {
                engines: count(args.engines),
            }),
        }
    }

    pub fn engines(self) -> usize {
        match self {
            ThreadModel::RunQueue { engines, .. }
            | ThreadModel::SocketThreads { engines }
            | ThreadModel::SocketProcesses { engines } => engines,
        }
    }

    /// Number of threads that read requests and write replies, including engines that do so.
    pub fn io_threads(self) -> usize {
        match self {
            ThreadModel::RunQueue { io_threads, .. } => io_threads,
            ThreadModel::SocketThreads { engines } | ThreadModel::SocketProcesses { engines } => {
                engines
            }
        }
    }

    pub fn engine_kind(self) -> EngineKind {
        match self {
            ThreadModel::RunQueue { .. } | ThreadModel::SocketThreads { .. } => EngineKind::Threads,
            ThreadModel::SocketProcesses { .. } => EngineKind::Processes,
        }
    }

    pub fn execution(self) -> Execution {
        match self {
            ThreadModel::RunQueue { .. } => Execution::Worker,
            ThreadModel::SocketThreads { .. } | ThreadModel::SocketProcesses { .. } => {
                Execution::Inline
            }
        }
    }

    /// Which thread writes replies. Without a run queue the engine itself does, which is also the
    /// I/O thread, so the default is reported.
    pub fn replies(self) -> Replies {
        match self {
            ThreadModel::RunQueue { replies, .. } => replies,
            ThreadModel::SocketThreads { .. } | ThreadModel::SocketProcesses { .. } => {
                Replies::IoThread
            }
        }
    }

    /// The engine, from 0, whose death ends the connections of an I/O thread. Engine threads die
    /// together with the server, so all of them have the same number here.
    pub fn engine_of_connections(self, io_thread: usize) -> usize {
        match self.engine_kind() {
            EngineKind::Threads => 0,
            EngineKind::Processes => io_thread,
        }
    }
}
