//! Loads into the embedded databases, and the program that does them.

mod load;
mod program;
