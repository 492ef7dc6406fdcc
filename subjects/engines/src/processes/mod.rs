//! Engines that are processes.

mod child;
mod generation;
mod messages;
mod supervisor;

pub use supervisor::serve;
