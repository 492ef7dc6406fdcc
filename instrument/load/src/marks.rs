//! Telling the reference server when the measured phase begins and ends: it reports its counters of
//! that time, without warm-up and the load of data.

use crate::desk::{Desk, DeskError};
use crate::error::Error;
use crate::plan::Plan;
use crate::stop::Stop;

/// A connection of its own, if the server is to be told.
pub struct Marks {
    desk: Option<Box<dyn Desk>>,
    server: String,
}

impl Marks {
    /// Before the sessions connect: theirs are not disturbed by one that comes between them.
    pub fn open(plan: &Plan, stop: &Stop) -> Result<Self, Error> {
        let desks = plan.marked.as_ref();
        Ok(Self {
            desk: desks.map(|it| it.open(false, stop)).transpose()?,
            server: plan.place(),
        })
    }

    pub fn begin(&mut self) -> Result<(), Error> {
        self.say("PHASE BEGIN")
    }

    pub fn end(&mut self) -> Result<(), Error> {
        self.say("PHASE END")
    }

    fn say(&mut self, statement: &str) -> Result<(), Error> {
        let Some(desk) = &mut self.desk else {
            return Ok(());
        };
        match desk.ask(statement) {
            Ok(_) => Ok(()),
            Err(refused @ DeskError::Refused(..)) => Err(Error::Desk {
                server: self.server.clone(),
                why: format!("{refused}; --mark-phase is for concurve-server alone"),
            }),
            // The sessions say what has become of the server.
            Err(DeskError::Lost(..) | DeskError::Stopped) => Ok(()),
        }
    }
}
