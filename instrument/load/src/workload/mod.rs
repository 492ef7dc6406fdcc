//! The requests of the sessions: a folder for each workload, with its options, its statements for
//! each language, its generator and its data. This file lists them: it selects the workload that
//! the command line names.

mod scripts;
mod statement;
mod tokens;
pub mod tpcb;
mod transaction;

pub use statement::{Piece, Statement};
pub use tokens::{DIGITS, Token, put_digits, tokens};
pub use transaction::{
    Answer, Ending, Generator, Language, Parameters, Prefill, Selection, TransactionKind, Workload,
    WorkloadError, draw_kind,
};

/// Options that select a workload.
#[derive(Debug, clap::Args)]
pub struct WorkloadOptions {
    /// Of a key-value server: ping, get, set, set-nx-del, incr [default: get]. Of a database:
    /// tpcb-rw3, tpcb-strict, tpcb-like, read, update, loop [default: tpcb-rw3]
    #[arg(long, value_name = "NAME", conflicts_with_all = ["command", "mix"])]
    workload: Option<String>,
    #[command(flatten)]
    scripts: scripts::ScriptOptions,
    #[command(flatten)]
    tpcb: tpcb::TpcbOptions,
}

impl WorkloadOptions {
    /// The workload for a server of this language, with so many transactions under way at once in
    /// each session. Commands may hold `run_id`, a text that no other load has.
    ///
    /// # Errors
    /// There is no such workload for this language, its options contradict each other, or one of them is
    /// another workload's.
    pub fn select(
        &self,
        language: Language,
        pipeline: u32,
        run_id: &str,
    ) -> Result<Selection, WorkloadError> {
        let name = self.workload.as_deref();
        if !language.is_database() || self.scripts.has_commands() {
            let selected = self.scripts.select(name, language, pipeline, run_id)?;
            return match self.tpcb.given() {
                None => Ok(selected),
                Some(option) => Err(WorkloadError::Options(format!(
                    "{option} is for the named workloads of databases, such as {}: commands have no data of their own; leave it out",
                    tpcb::DEFAULT
                ))),
            };
        }
        if self.scripts.has_mix() {
            return Err(WorkloadError::Options(
                "--mix is for key-value servers; a database has --workload and --command"
                    .to_owned(),
            ));
        }
        let name = name.unwrap_or(tpcb::DEFAULT);
        let selected = self.tpcb.select(name, language, pipeline);
        let selected = selected.unwrap_or_else(|| {
            Err(WorkloadError::Options(format!(
                "no workload {name:?} for a database; one of {}, or commands of your own by --command",
                tpcb::names().join(", ")
            )))
        })?;
        match self.scripts.given() {
            None => Ok(selected),
            Some(option) => Err(WorkloadError::Options(format!(
                "{option} is for key-value servers, and for commands of your own by --command: {name} has keys and rows of its own; leave it out"
            ))),
        }
    }
}
