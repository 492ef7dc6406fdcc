//! The highest rate that meets objectives on latency and errors.

mod fit;
mod live;
mod objective;
mod search;
mod show;

pub use live::find_rate;
pub use objective::Objective;
pub use show::{json, report, text};
