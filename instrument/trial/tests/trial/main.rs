//! Whole trials of real programs, judged by their records.

#[path = "../common/mod.rs"]
mod common;

mod accounts;
mod attached;
mod census;
mod descriptors;
mod hot;
mod outcomes;
mod readiness;
mod runner;
mod serving;
mod surroundings;
mod survivors;
mod waits;
