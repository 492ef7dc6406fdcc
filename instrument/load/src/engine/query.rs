//! The address of an engine: `PATH?name=value&name=value`.

use std::path::PathBuf;

/// A path, and the settings that follow it.
pub struct Query<'a> {
    pub path: PathBuf,
    settings: Vec<(&'a str, &'a str)>,
}

impl<'a> Query<'a> {
    /// # Errors
    /// No path, or a setting without a value.
    pub fn parse(text: &'a str) -> Result<Self, String> {
        let (path, settings) = text.split_once('?').unwrap_or((text, ""));
        if path.is_empty() {
            return Err("no path".to_owned());
        }
        let parts = settings.split('&').filter(|it| !it.is_empty());
        let pair = |it: &'a str| it.split_once('=').ok_or(format!("{it:?} has no value"));
        Ok(Self {
            path: PathBuf::from(path),
            settings: parts.map(pair).collect::<Result<_, _>>()?,
        })
    }

    /// Takes a setting that is one of some values; the first of them if it is not given.
    ///
    /// # Errors
    /// It is another value.
    pub fn one_of(&mut self, name: &str, values: &[&'static str]) -> Result<&'static str, String> {
        let Some(at) = self.settings.iter().position(|it| it.0 == name) else {
            return Ok(values[0]);
        };
        let (_, given) = self.settings.remove(at);
        let found = values.iter().find(|it| **it == given).copied();
        found.ok_or_else(|| format!("{name}={given} is not one of {}", values.join(", ")))
    }

    /// Takes a setting that is a number above 0.
    ///
    /// # Errors
    /// It is not a number above 0, or too large.
    pub fn number(&mut self, name: &str, default: usize) -> Result<usize, String> {
        Ok(self.number_if_given(name)?.unwrap_or(default))
    }

    /// The same; nothing if the setting is not there.
    pub fn number_if_given(&mut self, name: &str) -> Result<Option<usize>, String> {
        let Some(at) = self.settings.iter().position(|it| it.0 == name) else {
            return Ok(None);
        };
        let (_, given) = self.settings.remove(at);
        let number = given.parse().ok().filter(|it| (1..=1 << 20).contains(it));
        let number =
            number.ok_or_else(|| format!("{name}={given} is not a number from 1 to {}", 1 << 20));
        number.map(Some)
    }

    /// # Errors
    /// A setting was not taken: the engine does not know it.
    pub fn end(self) -> Result<PathBuf, String> {
        match self.settings.first() {
            Some((name, _)) => Err(format!("{name:?} is not a setting of this engine")),
            None => Ok(self.path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_have_values_and_are_all_taken() {
        let mut query = Query::parse("a/b?x=2").unwrap();
        assert_eq!(query.one_of("x", &["1", "2"]), Ok("2"));
        assert_eq!(query.one_of("y", &["1", "2"]), Ok("1"));
        assert_eq!(query.end(), Ok(PathBuf::from("a/b")));

        let mut query = Query::parse("a?x=3&y=1").unwrap();
        let wrong = query.one_of("x", &["1", "2"]).unwrap_err();
        assert_eq!(wrong, "x=3 is not one of 1, 2");
        assert_eq!(
            query.end().unwrap_err(),
            "\"y\" is not a setting of this engine"
        );
        for text in ["", "?x=1", "a?x"] {
            assert!(Query::parse(text).is_err(), "{text}");
        }
    }
}
