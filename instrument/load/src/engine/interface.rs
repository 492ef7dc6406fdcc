//! The interface of an embedded engine.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use crate::admin::AdminError;
use crate::workload::{Answer, Parameters};

/// The remedy if an engine has no data.
pub const INIT_REMEDY: &str = "is it the right folder? --init makes the data of a workload";

/// An engine that an address names, with the statements of a workload. Nothing is opened yet.
pub trait EmbeddedEngine: Debug + Send + Sync {
    /// The engine, the location of its data and its settings, as an address.
    fn name(&self) -> String;

    /// Why sessions cannot be processes of their own, if they cannot.
    fn refuses_processes(&self) -> Option<&'static str>;

    /// Opens the engine, once for all sessions of this process.
    ///
    /// # Errors
    /// There is no data, it is not this engine's, or a statement is not in its language.
    fn open(&self) -> Result<Arc<dyn OpenEngine>, EngineError>;
}

/// An engine that is open.
pub trait OpenEngine: Debug + Send + Sync {
    /// Opens a session on the calling thread, calls `run` with it, and closes it.
    ///
    /// # Errors
    /// The engine takes no more sessions, or not this one.
    fn session(
        &self,
        number: u64,
        run: &mut dyn FnMut(&mut dyn EngineSession),
    ) -> Result<(), EngineError>;

    /// Closes it, when all sessions have ended.
    ///
    /// # Errors
    /// Committed transactions may not be on the disk.
    fn close(&self) -> Result<(), EngineError> {
        Ok(())
    }
}

/// A session of an engine.
pub trait EngineSession {
    /// Executes some of the workload's statements with the parameters of a transaction: one round
    /// trip. The answer is that to the last statement, or the first error: then the other
    /// statements are not executed, and the transaction has been rolled back.
    fn execute(&mut self, statements: Range<usize>, parameters: &Parameters) -> Answer;

    /// How often this session has waited for another one so far; 0 if the engine does not count it.
    fn waits(&self) -> u64 {
        0
    }
}

/// What an engine cannot do, with a remedy.
#[derive(Debug, thiserror::Error)]
#[error("{engine}: {why}; {remedy}")]
pub struct EngineError {
    /// As [`EmbeddedEngine::name`].
    pub engine: String,
    pub why: String,
    pub remedy: &'static str,
}

impl From<EngineError> for AdminError {
    fn from(error: EngineError) -> Self {
        let EngineError {
            engine,
            why,
            remedy,
        } = error;
        Self::Connect {
            server: engine,
            why: format!("{why}; {remedy}"),
        }
    }
}
