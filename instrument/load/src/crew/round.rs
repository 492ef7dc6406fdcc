//! What the members of a crew say of a task, until all have ended it.

use super::Said;
use crate::error::Error;
use crate::tally::{Interval, Tally};

/// What they have said of the present task.
#[derive(Default)]
pub struct Round {
    /// What each has counted, once it has ended.
    pub tallies: Vec<Option<Tally>>,
    /// What each has told of it as intervals.
    told: Vec<Option<Interval>>,
    pub ended: usize,
}

impl Round {
    pub fn of(members: usize) -> Self {
        Self {
            tallies: (0..members).map(|_| None).collect(),
            told: (0..members).map(|_| None).collect(),
            ended: 0,
        }
    }

    pub fn take(
        &mut self,
        number: usize,
        said: Said,
        watch: &mut dyn FnMut(usize, Option<&Interval>),
    ) -> Result<(), Error> {
        match said {
            Said::Ready => {}
            Said::Interval(interval) => {
                watch(number, Some(&interval));
                match &mut self.told[number] {
                    Some(sum) => sum.add(&interval),
                    first => *first = Some(interval),
                }
            }
            Said::Ended(mut tally) => {
                if let Some(interval) = &self.told[number] {
                    tally.add_interval(interval);
                }
                watch(number, None);
                self.tallies[number] = Some(*tally);
                self.ended += 1;
            }
            // A process that was let go has ended.
            Said::Failed(Error::Part(_)) if self.tallies[number].is_some() => {}
            Said::Failed(error) => return Err(error),
        }
        Ok(())
    }
}
