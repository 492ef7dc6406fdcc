//! Engines that are processes.

mod child;
mod generation;
mod keeper;
mod news;

use std::time::Duration;

pub use keeper::serve;

/// Who lives for this long has started well.
const QUICK: Duration = Duration::from_secs(1);
