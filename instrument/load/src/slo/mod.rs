//! The highest rate that meets objectives on latency and errors.

mod fit;
mod live;
mod loads;
mod part;
mod search;
mod show;

pub use live::seek_rate;
pub use part::{part_json, part_text, report_part};
pub use show::{exit_code, json, report, text};
