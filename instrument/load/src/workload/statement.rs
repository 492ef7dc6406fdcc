//! A statement: text with places for numbers.

/// What is said to the server, in its language, with places for the numbers of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    pub pieces: Vec<Piece>,
    /// Its numbers are part of its text, which is another one each time: it cannot be prepared.
    pub is_new: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Part of the statement as it stands.
    Text(String),
    /// A value that is the same each time. It is never split or read.
    Bytes(Vec<u8>),
    /// A number, by its place in [`super::Numbers`].
    Number(usize),
}

/// Why a statement cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum StatementError {
    #[error("an empty command: write one like 'SET {{key}} {{value}}'")]
    Empty,
    #[error("{statement:?}: unknown placeholder {name:?}; there are {known}")]
    Placeholder {
        statement: String,
        name: String,
        known: String,
    },
    #[error("{0:?}: a brace that is not closed")]
    Brace(String),
}

impl Statement {
    pub fn of(pieces: Vec<Piece>) -> Self {
        Self {
            pieces,
            is_new: false,
        }
    }

    /// The same with its numbers in its text, and a comment with one that makes it another text each
    /// time. A statement without numbers stays as it is.
    pub fn anew(&self, label: usize) -> Self {
        if !self.pieces.iter().any(|it| matches!(it, Piece::Number(_))) {
            return self.clone();
        }
        let (begin, end) = (" /* ".to_owned(), " */".to_owned());
        let comment = [Piece::Text(begin), Piece::Number(label), Piece::Text(end)];
        Self {
            pieces: [&self.pieces[..], &comment].concat(),
            is_new: true,
        }
    }

    /// Reads a template such as `SET {key} {value}`; `places` says what stands for each name.
    ///
    /// # Errors
    /// It is empty, a brace is not closed, or a name is unknown.
    pub fn parse(text: &str, places: &[(&str, Vec<Piece>)]) -> Result<Self, StatementError> {
        let mut pieces = Vec::new();
        let mut rest = text.trim();
        if rest.is_empty() {
            return Err(StatementError::Empty);
        }
        while let Some((before, after)) = rest.split_once('{') {
            let (name, behind) = after
                .split_once('}')
                .ok_or_else(|| StatementError::Brace(text.to_owned()))?;
            if !before.is_empty() {
                pieces.push(Piece::Text(before.to_owned()));
            }
            let place = places.iter().find(|(known, _)| *known == name);
            let (_, stands) = place.ok_or_else(|| StatementError::Placeholder {
                statement: text.to_owned(),
                name: name.to_owned(),
                known: names(places),
            })?;
            pieces.extend(stands.iter().cloned());
            rest = behind;
        }
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest.to_owned()));
        }
        Ok(Self::of(pieces))
    }
}

fn names(places: &[(&str, Vec<Piece>)]) -> String {
    let names: Vec<&str> = places.iter().map(|(name, _)| *name).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> Vec<(&'static str, Vec<Piece>)> {
        let key = vec![Piece::Text("key:".to_owned()), Piece::Number(0)];
        vec![("key", key), ("value", vec![Piece::Bytes(Vec::new())])]
    }

    #[test]
    fn a_template_is_pieces() {
        let statement = Statement::parse("SET lock:{key}:x {value} PX 10", &places()).unwrap();
        let text = |text: &str| Piece::Text(text.to_owned());
        assert_eq!(
            statement.pieces,
            [
                text("SET lock:"),
                text("key:"),
                Piece::Number(0),
                text(":x "),
                Piece::Bytes(Vec::new()),
                text(" PX 10")
            ]
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |text| Statement::parse(text, &places()).unwrap_err().to_string();
        assert!(error(" ").contains("an empty command"));
        assert!(error("GET {kye}").contains("\"kye\"; there are key, value"));
        assert!(error("GET {key").contains("not closed"));
    }
}
