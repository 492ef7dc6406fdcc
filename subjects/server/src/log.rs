//! Lines on standard error.

use std::fmt::Display;
use std::io::{self, Write};
use std::os::fd::AsFd;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Writes a line on standard error. Nothing fails if nobody reads it any more.
pub fn tell(text: impl Display) {
    let _ = writeln!(io::stderr(), "concurve-server: {text}");
}

/// Whether a line can be written without waiting for the reader of standard error.
pub fn has_room() -> bool {
    let stderr = io::stderr();
    let mut asked = [PollFd::new(stderr.as_fd(), PollFlags::POLLOUT)];
    poll(&mut asked, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
}
