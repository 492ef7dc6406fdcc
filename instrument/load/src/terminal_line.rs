//! A line on the terminal that is drawn over its last state.

use std::io::{IsTerminal, Write, stderr};

/// The line; it is cleared when this is dropped.
#[derive(Debug, Default)]
pub struct TerminalLine {
    drawn: bool,
}

impl TerminalLine {
    /// A line, if there is a terminal to show it on.
    pub fn on_terminal() -> Option<Self> {
        stderr().is_terminal().then(Self::default)
    }

    /// Shows a text in place of the last one.
    pub fn show(&mut self, text: &str) {
        let _ = write!(stderr(), "\r\x1b[K{text}");
        let _ = stderr().flush();
        self.drawn = true;
    }
}

impl Drop for TerminalLine {
    fn drop(&mut self) {
        if self.drawn {
            let _ = write!(stderr(), "\r\x1b[K");
        }
    }
}
