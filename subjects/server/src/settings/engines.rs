//! Who reads, executes and answers: what the dials mean together.

use super::{Engines, Execution, Options, Replies};
use crate::error::Error;

impl Options {
    pub(super) fn execution(&self) -> Result<Execution, Error> {
        match (self.engines, self.execution) {
            (Engines::Threads, asked) => Ok(asked.unwrap_or(Execution::Worker)),
            (Engines::Processes, None | Some(Execution::Inline)) => Ok(Execution::Inline),
            (Engines::Processes, Some(Execution::Worker)) => Err(Error::Usage(
                "--execution worker is not for --engines processes: a request stays with the engine \
                 that owns its socket; leave it out"
                    .to_owned(),
            )),
        }
    }

    pub(super) fn replies(&self, execution: Execution) -> Result<Replies, Error> {
        match (execution, self.replies) {
            (Execution::Inline, Some(_)) => Err(Error::Usage(
                "--replies is for --execution worker: where who reads also executes, he answers; \
                 leave it out"
                    .to_owned(),
            )),
            (_, asked) => Ok(asked.unwrap_or(Replies::IoThread)),
        }
    }

    /// How many threads there are that read and answer, engines or not.
    pub(super) fn io_threads(&self, execution: Execution) -> Result<usize, Error> {
        let threads = match (self.engines, self.io_threads, self.engine_count) {
            (Engines::Processes, Some(_), _) => {
                let text = "--io-threads is not for --engines processes: each engine reads and \
                            answers itself; say --engine-count";
                return Err(Error::Usage(text.to_owned()));
            }
            (Engines::Processes, None, count) => count,
            (Engines::Threads, _, Some(_)) if execution == Execution::Inline => {
                let text = "--engine-count is not for --execution inline: each I/O thread is an \
                            engine; say --io-threads";
                return Err(Error::Usage(text.to_owned()));
            }
            (Engines::Threads, threads, _) => threads,
        };
        Ok(usize::from(threads.unwrap_or(1)))
    }
}
