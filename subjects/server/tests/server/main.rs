//! The lock table against its model, and the parser of requests with any bytes.

#[path = "../common/lock_model/mod.rs"]
mod lock_model;
#[path = "../../../engines/tests/common/schedule.rs"]
mod schedule;

mod model;
mod parser_fuzz;

use concurve_fuzz::Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;
