//! Loads for volumes: the load of document 003 into real databases, and streams of requests.
//!
//! ```text
//! export: random tables ─▶ files
//! load:   files ─▶ loaders ─▶ database ─▶ closing jobs ─▶ figures, and those of the device
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
mod file_system;
mod report;
mod run;

pub use run::main;
