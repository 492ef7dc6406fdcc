use std::process::ExitCode;

use concurve_engines::memory::SharedAllocator;

/// What is allocated once the server is set up is shared by its engines.
#[global_allocator]
static ALLOCATOR: SharedAllocator = SharedAllocator;

fn main() -> ExitCode {
    concurve_server::main()
}
