//! Whole trials of real programs, judged by their records.

#[path = "../common/mod.rs"]
mod common;

mod accounts;
mod outcomes;
mod runner;
mod serving;
mod surroundings;
