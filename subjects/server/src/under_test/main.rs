//! The server for the tests alone: its disk may be made to fail.

mod failing;

use std::process::ExitCode;

use concurve_engines::memory::SharedAllocator;

/// Allocates in the memory that engines share, once the server has set it up.
#[global_allocator]
static ALLOCATOR: SharedAllocator = SharedAllocator;

fn main() -> ExitCode {
    concurve_server::main_with(failing::open)
}
