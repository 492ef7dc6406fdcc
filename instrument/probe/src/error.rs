//! The one error of this crate.

use std::io;

/// Why a reading or a control failed.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// A system call failed.
    #[error("{what}: {source}")]
    System {
        /// What was tried, and on what.
        what: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The kernel's text or message was not understood.
    #[error("{what}: not understood: {excerpt:?}; please report it with the kernel's version")]
    Syntax {
        /// File or message.
        what: String,
        /// The part that was not understood.
        excerpt: String,
    },
    /// The host lacks the source or refuses it.
    #[error("{0}")]
    Unavailable(String),
}

impl ProbeError {
    /// Wraps the error of a system call.
    pub fn system(what: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::System {
            what: what.into(),
            source: source.into(),
        }
    }

    /// Wraps `errno` as it stands after a failed call into libc.
    pub(crate) fn last(what: impl Into<String>) -> Self {
        Self::system(what, io::Error::last_os_error())
    }

    pub(crate) fn syntax(what: impl Into<String>, text: &str) -> Self {
        Self::Syntax {
            what: what.into(),
            excerpt: text.chars().take(80).collect(),
        }
    }

    /// Whether what was asked about has ended, or is not there. Any other error says nothing of it.
    pub fn is_gone(&self) -> bool {
        matches!(
            self.errno(),
            Some(libc::ENOENT | libc::ESRCH | libc::ENODEV)
        )
    }

    /// Whether this user may not do it.
    pub fn is_refusal(&self) -> bool {
        matches!(self.errno(), Some(libc::EPERM | libc::EACCES))
    }

    /// `errno` of a failed system call.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::System { source, .. } => source.raw_os_error(),
            _ => None,
        }
    }
}

/// Shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, ProbeError>;

/// A reading of something that may have ended: none if it has. The error says why nothing is known of it.
pub fn unless_gone<T>(reading: Result<T>) -> Result<Option<T>> {
    match reading {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.is_gone() => Ok(None),
        Err(error) => Err(error),
    }
}
