//! Runs every target once with little work, and checks its effects and its output, but not how long
//! it takes.

mod computing;
mod looking;
mod processes;
mod program;
mod saying;
mod serving;
mod storms;
mod waiting;
