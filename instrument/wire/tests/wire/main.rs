//! What goes over the wire: the golden files, and any contents.

mod fuzz;
mod golden;

use concurve_fuzz::Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;
