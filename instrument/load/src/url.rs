//! The parts of an address as databases write it: `USER@HOST:PORT/DATABASE?NAME=VALUE`.

use nix::unistd::{Uid, User};
use percent_encoding::percent_decode_str;

use crate::target::PASSWORD_IN_SIGHT;

/// What stands behind a scheme.
#[derive(Debug, PartialEq, Eq)]
pub struct Url {
    /// Who logs in; if nobody is named the user of this process, as with the servers' own clients.
    pub user: String,
    /// `HOST:PORT`, as it stands there.
    pub place: String,
    pub database: Option<String>,
    pub options: Vec<(String, String)>,
}

impl Url {
    /// # Errors
    /// What is wrong, without the form to write.
    pub fn parse(rest: &str) -> Result<Self, String> {
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (place, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, place) = match place.rsplit_once('@') {
            Some((user, _)) if user.contains(':') => return Err(PASSWORD_IN_SIGHT.to_owned()),
            Some((user, place)) => (decoded(user)?, place),
            None => (own_name()?, place),
        };
        let options = query.split('&').filter(|it| !it.is_empty());
        Ok(Self {
            user,
            place: decoded(place)?,
            database: Some(decoded(database)?).filter(|it| !it.is_empty()),
            options: options.map(option).collect::<Result<_, _>>()?,
        })
    }
}

fn option(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| format!("{text:?} has no value"))?;
    Ok((decoded(name)?, decoded(value)?))
}

fn decoded(text: &str) -> Result<String, String> {
    let decoded = percent_decode_str(text).decode_utf8();
    match decoded {
        Ok(decoded) if !decoded.contains('\0') => Ok(decoded.into_owned()),
        _ => Err(format!("{text:?} is no text")),
    }
}

fn own_name() -> Result<String, String> {
    match User::from_uid(Uid::effective()) {
        Ok(Some(user)) => Ok(user.name),
        _ => Err("no user is named, and this process's has no name".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_written() {
        let url = Url::parse("m%40e@[::1]:7000/my%2Fbank?a=1&b=%2Frun").unwrap();
        assert_eq!((&*url.user, &*url.place), ("m@e", "[::1]:7000"));
        assert_eq!(url.database.as_deref(), Some("my/bank"));
        let options = [("a", "1"), ("b", "/run")];
        assert_eq!(url.options, options.map(|(a, b)| (a.into(), b.into())));

        let url = Url::parse("host").unwrap();
        assert_eq!((&*url.place, url.database), ("host", None));
        assert_eq!(url.user, own_name().unwrap());
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, why) in [
            ("me:secret@127.0.0.1", "--password-from"),
            ("me@127.0.0.1?port", "has no value"),
            ("me%00@127.0.0.1", "no text"),
        ] {
            let error = Url::parse(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
