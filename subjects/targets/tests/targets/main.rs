//! Every target once, for real and small: what it does and what it says, never how long it
//! takes.

mod computing;
mod looking;
mod processes;
mod program;
mod saying;
mod serving;
mod storms;
mod waiting;
