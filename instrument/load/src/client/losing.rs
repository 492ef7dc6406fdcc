//! A session that loses its connection: it is counted, and the others go on.

use std::io::{self, ErrorKind};

use concurve_clock::monotonic_ns;
use rustix::event::epoll;

use super::{Client, poll_error};
use crate::connecting::Failure;
use crate::error::Error;

impl Client<'_> {
    /// Takes a session out of everything, if only its connection is lost.
    ///
    /// # Errors
    /// The server does not speak the protocol: then no answer of it can be trusted.
    pub(super) fn lose(&mut self, index: usize, failure: Failure) -> Result<(), Error> {
        let session = &mut self.sessions[index];
        let source = match failure {
            Failure::Io(source) => source,
            Failure::Protocol(source) => {
                return Err(Error::protocol(self.plan, session.number, source));
            }
        };
        let at_work = session.remaining > 0 || session.under_way() > 0;
        self.unfinished -= usize::from(at_work);
        let (under_way, remaining) = session.end();
        let now = monotonic_ns();
        self.counting
            .lost(&reason(&source), under_way.into_iter(), remaining, now);
        self.out.clear();
        self.timers.retain(|due| due.0.1 != index);
        if let Some(open) = &mut self.open {
            open.remove(index);
        }
        epoll::delete(&self.epoll, &session.connection).map_err(poll_error)?;
        session.connection.close();
        Ok(())
    }
}

/// Why a connection was lost, in words that are alike for reasons that are alike.
fn reason(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::UnexpectedEof => "closed by the server".to_owned(),
        ErrorKind::ConnectionReset => "reset by peer".to_owned(),
        kind => kind.to_string(),
    }
}
