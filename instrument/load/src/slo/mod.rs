//! The highest rate that meets objectives on latency and errors.

mod fit;
mod live;
mod search;
mod show;

pub use live::find_rate;
pub use show::{json, report, text};
