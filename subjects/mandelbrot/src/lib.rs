//! The native kernel of the study `thread-scaling`: escape time of the Mandelbrot set in f64,
//! shared among threads in the ways that document 002 compared.
//!
//! What is computed stands in [`view`] and [`kernel`], how it is shared in [`cut`] and [`handout`],
//! who computes it in [`crew`]. `docs/programs/mandelbrot.md` is the user's page and
//! `docs/decisions/0008-kernel-recurrence.md` defines the arithmetic to the bit.

mod cli;
pub mod crew;
pub mod cut;
pub mod error;
mod gate;
pub mod handout;
pub mod kernel;
mod limits;
pub mod location;
pub mod picture;
mod report;
pub mod view;

use std::process::ExitCode;

/// Entry point of the binary: 0 done, 1 failed, 2 wrong usage.
pub fn main() -> ExitCode {
    match cli::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("concurve-mandelbrot: {error}");
            ExitCode::FAILURE
        }
    }
}
