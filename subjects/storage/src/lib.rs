//! What loads a volume: the load of document 003 into real databases, and streams of requests.
//!
//! ```text
//! export: a draw of tables ─▶ files
//! load:   files ─▶ loaders ─▶ database ─▶ closing jobs ─▶ figures, beside the device's own
//! ```
//!
//! `concurve-disk` simulates the same two workloads.

pub mod database;
pub mod device;
pub mod error;
pub mod export;
pub mod load;
pub mod streams;

mod cli;
mod direct;
mod figures;
mod page_cache;
mod report;
mod run;
mod space;
mod text;

pub use run::main;
