//! What is counted: tallies of transactions, and histograms of their latencies.

pub mod histogram;
pub mod tally;
