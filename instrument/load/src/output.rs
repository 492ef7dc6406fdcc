//! What is written to standard output and standard error. Either may be full, or its reader be gone.

use std::io::{self, Write, stderr, stdout};

/// Writes figures to standard output.
///
/// # Errors
/// Not all of it could be written.
pub fn print(text: &str) -> io::Result<()> {
    let mut out = stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Tells the user something on standard error; if that cannot be written, nobody can be told.
pub fn tell(text: &str) {
    let _ = writeln!(stderr(), "{text}");
}
