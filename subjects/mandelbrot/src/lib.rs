//! The native kernel of the study `thread-scaling`: escape time of the Mandelbrot set in f64,
//! shared among threads in the ways that document 002 compared.
//!
//! [`view`] and [`kernel`] define what is computed, [`cut`] and [`handout`] how it is divided among
//! threads, and [`workers`] runs the threads. `docs/programs/mandelbrot.md` is the user's page and
//! `docs/decisions/0008-kernel-recurrence.md` defines the arithmetic to the bit.

mod cli;
pub mod cut;
pub mod error;
pub mod handout;
pub mod image;
pub mod kernel;
mod limits;
mod live;
pub mod location;
pub mod owners;
mod report;
mod start_barrier;
pub mod view;
pub mod workers;

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
