//! The sums of pictures, and the program that computes them.

mod command_line;
mod equal_sums;
