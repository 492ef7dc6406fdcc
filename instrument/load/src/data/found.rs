//! What stands at the place of the data.

use super::{DataError, Desk, Dialect};
use crate::workload::tpcb::sql::FORMAT;
use crate::workload::tpcb::{ACCOUNTS, Data, Profile};

#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    Nothing,
    /// Not made here.
    Foreign,
    /// Made by another version of this program.
    Other(i64),
    /// Making it was begun, and not ended.
    Incomplete,
    Made(Data),
}

/// Why a load does not begin.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Refusal {
    #[error("there is no data yet ({0}): --init makes it, for {1}")]
    Missing(&'static str, String),
    #[error(
        "what is there ({0}) was not made here: it is left alone, also by --init; name another database or file in the address, or rename it"
    )]
    Foreign(&'static str),
    #[error("the data ({0}) was made by another version (format {1}): --init makes it anew")]
    Other(&'static str, i64),
    #[error("the data ({0}) is half made: --init makes it anew")]
    Incomplete(&'static str),
    #[error("the data ({0}) is for {1}, and not for {2}: ask for that, or --init makes it anew")]
    Unlike(&'static str, String, String),
}

impl Found {
    /// Looks, and changes nothing.
    pub fn at(desk: &mut dyn Desk, dialect: &dyn Dialect) -> Result<Self, DataError> {
        let mut number = |statement: &str| desk.ask(statement).map(Option::unwrap_or_default);
        if number(&dialect.occupied())? == 0 {
            return Ok(Self::Nothing);
        }
        if number(&dialect.marked())? == 0 {
            return Ok(Self::Foreign);
        }
        // Somebody else's table of this name has other columns, or another content.
        match desk.ask(&dialect.mark("format")) {
            Ok(Some(FORMAT)) => {}
            Ok(Some(other)) if other > 0 => return Ok(Self::Other(other)),
            Ok(_) | Err(super::DeskError::Refused(..)) => return Ok(Self::Foreign),
            Err(error) => return Err(error.into()),
        }
        let mut mark = |name| desk.ask(&dialect.mark(name));
        let mut marks = [None; 4];
        for (number, name) in marks
            .iter_mut()
            .zip(["workload", "scale", "accounts", "files"])
        {
            *number = mark(name)?;
        }
        Ok(match data(marks) {
            Some(data) => Self::Made(data),
            None => Self::Incomplete,
        })
    }

    /// The data, if it is what is needed.
    pub fn expect(self, needed: Data, dialect: &dyn Dialect) -> Result<Data, Refusal> {
        let place = dialect.place();
        match self {
            Self::Made(data) if data.serves(&needed) => Ok(data),
            Self::Made(data) => Err(Refusal::Unlike(place, words(data), words(needed))),
            Self::Nothing => Err(Refusal::Missing(place, words(needed))),
            Self::Foreign => Err(Refusal::Foreign(place)),
            Self::Other(format) => Err(Refusal::Other(place, format)),
            Self::Incomplete => Err(Refusal::Incomplete(place)),
        }
    }

    /// Whether there is something of ours to take away first.
    pub fn may_be_replaced(self, dialect: &dyn Dialect) -> Result<bool, Refusal> {
        match self {
            Self::Foreign => Err(Refusal::Foreign(dialect.place())),
            Self::Nothing => Ok(false),
            Self::Other(_) | Self::Incomplete | Self::Made(_) => Ok(true),
        }
    }
}

fn data([workload, scale, accounts, files]: [Option<i64>; 4]) -> Option<Data> {
    let code = workload?;
    Some(Data {
        profile: Profile::ALL.into_iter().find(|it| it.code() == code)?,
        scale: scale?.try_into().ok()?,
        accounts: accounts?.try_into().ok()?,
        files: files?.try_into().ok()?,
    })
}

/// The data in words, as it is asked for.
pub fn words(data: Data) -> String {
    format!("--workload {} {}", data.profile.name(), size(data))
}

/// How much of it there is.
pub fn size(data: Data) -> String {
    let accounts = match data.accounts {
        ACCOUNTS => String::new(),
        fewer => format!(" --accounts {fewer}"),
    };
    format!("--scale {}{accounts} --files {}", data.scale, data.files)
}
