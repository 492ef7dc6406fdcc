//! **mq-deadline**, in outline: deadline whose batches may jump, without the kernel's I/O
//! priorities and zones. Requests are handed to one hardware queue here, so that the name on
//! kernels with several queues is all that differs.

use super::deadline::{Deadline, Settings};

pub fn new() -> Deadline {
    Deadline::new(Settings::of_2_6_24())
}
