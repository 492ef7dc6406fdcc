//! What is counted: tallies of transactions, histograms of their latencies, answers over time, and
//! the times of single requests.

pub mod greatest;
pub mod histogram;
pub mod requests;
pub mod tally;
pub mod timeline;
pub mod window;
