//! TPC-B and its relatives: a bank of branches, tellers and accounts, and a history of the
//! transactions.
//!
//! - `tpcb-rw3`: document 004's. A READ and an UPDATE of a record in each of three files, and an
//!   INSERT in a fourth.
//! - `tpcb-strict`: the profile of the standard (TPC Benchmark B 2.0, clause 1.2).
//! - `tpcb-like`: what pgbench does under this name, with its SQL and its distributions.
//! - `read` and `update`: one account, in a transaction of its own.
//! - `loop`: document 001's code loop: three reads, then an update and an insert in a transaction.
//!
//! One definition for all servers: a profile is a list of steps, and a [`dialect::Dialect`] writes
//! them in a server's language.

mod bank;
pub mod dialect;
mod options;
mod parameters;
mod profile;
pub mod records;
pub mod sql;
pub mod statements;
#[cfg(test)]
mod tests;
mod workload;

pub use options::{DEFAULT, TpcbOptions, names};

#[cfg(test)]
pub use {
    bank::Bank,
    profile::{ACCOUNTS, BankData, Profile},
    workload::{RoundTrips, Tpcb},
};
