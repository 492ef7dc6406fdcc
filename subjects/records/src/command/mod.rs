//! The record language: operations as words, for requests over a network and for prepared
//! statements.
//!
//! [`Command::parse`] parses the words once. [`Client::execute`] does the operation with the same
//! words, or with others of the same shape: the command contains the indices of the words that are
//! the name of a file, a key value and a record. `docs/programs/records.md` is the user's page.
//!
//! Numbers in records and keys are text: [`NUMBER_BYTES`] characters with leading zeros and the
//! sign first, as in COBOL. So the bytes on the wire, in a record and on the page are the same, and
//! non-negative numbers compare as their text does.
//!
//! ```
//! use concurve_records::command::{Client, Command, Reply};
//! use concurve_records::{Engine, EngineOptions};
//!
//! # let folder = tempfile::tempdir()?;
//! let (engine, _) = Engine::open(folder.path(), EngineOptions::default())?;
//! let mut client = Client::new(engine.session());
//! let mut run = |text: &str| {
//!     let words: Vec<&[u8]> = text.split(' ').map(str::as_bytes).collect();
//!     let command = Command::parse(&words[..]).map_err(|it| it.to_string())?;
//!     let reply = client.execute(&command, &words[..]).map_err(|it| it.to_string())?;
//!     Ok::<String, String>(format!("{reply:?}"))
//! };
//! run("CREATE accounts 24 KEY 0:12:text")?;
//! run("INSERT accounts 000000000042-00000000007")?;
//! run("BEGIN")?;
//! run("GET EQUAL accounts 0 000000000042 SINGLE FIELD 12 12")?;
//! run("UPDATE accounts 000000000042000000000100")?;
//! run("END")?;
//! # drop(client);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod audit;
mod client;
mod files;
mod parse;
mod statement;

pub use audit::{GROUPS_MAX, Groups, differing};
pub use client::Client;
pub use statement::{
    AnswerForm, Command, Field, MANY_BYTES_MAX, NUMBER_BYTES, Refusal, Reply, Sums, Wanted, Words,
};
