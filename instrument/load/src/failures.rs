//! What failed in a run that goes on all the same, because its figures stand.

use crate::error::Error;

/// In the order in which it failed; each is told.
#[derive(Debug, Default)]
pub struct Failures(Vec<Error>);

impl Failures {
    /// Keeps the error, if it is one; else returns what was done.
    pub fn note<T>(&mut self, done: Result<T, impl Into<Error>>) -> Option<T> {
        done.map_err(|it| self.0.push(it.into())).ok()
    }

    /// What the run has come to, unless something failed.
    pub fn or<T>(self, done: T) -> Result<T, Self> {
        match self.0.is_empty() {
            true => Ok(done),
            false => Err(self),
        }
    }

    /// Those that the user is told. A reader of the output that has gone wants to know nothing more of it.
    pub fn told(&self) -> impl Iterator<Item = &Error> {
        self.0.iter().filter(|it| !it.is_of_reader())
    }

    /// That of the first one that is told, else of the reader that has gone; `signal` is the one that has
    /// stopped the run, if one has.
    pub fn exit_code(&self, signal: Option<i32>) -> u8 {
        let first = self.told().next().or(self.0.first());
        first.map_or(0, |it| it.exit_code(signal))
    }
}

impl<E> From<E> for Failures
where
    Error: From<E>,
{
    fn from(error: E) -> Self {
        Self(vec![error.into()])
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, ErrorKind};

    use super::*;

    fn reader_gone() -> Error {
        Error::Output(io::Error::from(ErrorKind::BrokenPipe))
    }

    #[test]
    fn the_first_that_is_not_the_readers_gives_the_exit_code() {
        let mut failures = Failures::default();
        assert_eq!(failures.note(Ok::<_, Error>(3)), Some(3));
        assert!(failures.note(Err::<(), _>(reader_gone())).is_none());
        assert_eq!(
            (failures.told().count(), failures.exit_code(None)),
            (0, 141)
        );
        for usage in ["first", "second"] {
            failures.note(Err::<(), _>(Error::Usage(usage.to_owned())));
        }
        failures.note(Err::<(), _>(Error::ThreadFailed));
        let told = Vec::from_iter(failures.told().map(Error::to_string));
        assert_eq!(told[..2], ["first", "second"]);
        assert_eq!((told.len(), failures.exit_code(None)), (3, 2));
        assert!(failures.or(()).is_err());
        assert_eq!(Failures::default().or(1).unwrap(), 1);
    }
}
