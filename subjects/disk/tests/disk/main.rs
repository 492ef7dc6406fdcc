//! The simulator against closed forms, and properties of its schedulers.

#[path = "../common/mod.rs"]
mod common;

mod closed_forms;
mod events;
mod load;
mod schedulers;
