//! The protocol of Redis, versions 2 and 3: requests in, replies out. Pure.

pub mod parser;
pub mod writer;
