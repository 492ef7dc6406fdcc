//! Which threads and processes the server has, and what each of them does.

use super::levels::{EngineKind, Execution, Replies};
use crate::error::Error;

/// Which threads read, execute, wait for the disk and write replies. Chosen once, at the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadModel {
    /// I/O threads read, and engines that are threads execute what they find in a run queue.
    RunQueue {
        engines: usize,
        io_threads: usize,
        replies: Replies,
        /// A thread of its own waits for the disk.
        has_disk_thread: bool,
    },
    /// Engines are threads; each reads, executes and answers for the clients that it is given.
    SocketThreads { engines: usize },
    /// Engines are processes; each also accepts clients.
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
    /// The model that the options describe together. `needs_disk`: requests wait for the disk
    /// before they are answered.
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

    /// Threads that read and answer, whether they are engines or not.
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

    /// Without a run queue the engine answers; that is shown under the name of the default.
    pub fn replies(self) -> Replies {
        match self {
            ThreadModel::RunQueue { replies, .. } => replies,
            ThreadModel::SocketThreads { .. } | ThreadModel::SocketProcesses { .. } => {
                Replies::IoThread
            }
        }
    }

    /// The engine, from 0, whose death ends the connections of an I/O thread. Threads die with the
    /// whole server, so one number stands for all of them.
    pub fn engine_of_connections(self, io_thread: usize) -> usize {
        match self.engine_kind() {
            EngineKind::Threads => 0,
            EngineKind::Processes => io_thread,
        }
    }
}
