//! The arguments of a request, and the outcome of its execution.

use std::time::Duration;

use concurve_records::command::Words;

use crate::resp::parser::Span;

/// What happens after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Its reply was written.
    Done,
    /// It waits for a lock. Nothing was written; the caller executes it again after a pause.
    Wait,
    /// It waits in the queue of a lock. Nothing was written; the caller executes it again when its
    /// session is woken, or after a pause.
    Parked,
    /// It is done, but not durable yet. Nothing was written; the confirmation of its session writes
    /// the reply.
    Unconfirmed,
    /// It is a password that must not be tried yet. Nothing was written; the caller executes it again
    /// after this time.
    Delayed(Duration),
    /// Its reply was written, and the connection is to be closed.
    Close,
}

impl Flow {
    /// Whether the request is to be executed again.
    pub fn is_again(self) -> bool {
        matches!(self, Flow::Wait | Flow::Parked | Flow::Delayed(_))
    }
}

/// The arguments of a request; the first is the name of the command.
#[derive(Debug, Clone, Copy)]
pub struct Arguments<'a> {
    pub bytes: &'a [u8],
    pub spans: &'a [Span],
}

impl Words for Arguments<'_> {
    fn count(&self) -> usize {
        self.len()
    }

    fn word(&self, at: usize) -> &[u8] {
        self.at(at)
    }
}

impl<'a> Arguments<'a> {
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The length of the request, without what frames it.
    pub fn bytes_used(&self) -> usize {
        self.spans
            .iter()
            .map(|(start, end)| (end - start) as usize)
            .sum()
    }

    pub fn get(&self, at: usize) -> Option<&'a [u8]> {
        let (start, end) = *self.spans.get(at)?;
        self.bytes.get(start as usize..end as usize)
    }

    /// An argument that the arity of the command guarantees.
    pub fn at(&self, at: usize) -> &'a [u8] {
        self.get(at).unwrap_or_default()
    }

    /// The arguments from `at` on.
    pub fn from(&self, at: usize) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let (bytes, spans) = (self.bytes, self.spans.get(at..).unwrap_or_default());
        spans
            .iter()
            .map(|&(start, end)| &bytes[start as usize..end as usize])
    }
}
