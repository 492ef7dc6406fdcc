//! The highest rate that meets objectives on latency and errors.

mod fit;
mod live;
mod search;
mod show;

pub use live::seek_rate;
pub use show::{exit_code, json, report, text};
