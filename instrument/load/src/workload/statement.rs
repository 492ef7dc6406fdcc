//! A statement: text with parameters.

/// A statement in the server's language, with parameters that each transaction fills in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    pub pieces: Vec<Piece>,
    /// Its parameters are part of its text, so that the text is new each time: it cannot be prepared.
    pub is_new: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Literal text.
    Text(String),
    /// A value that is the same each time; it is passed on as it is, never split or interpreted.
    Bytes(Vec<u8>),
    /// A number, by its slot in [`Parameters`](super::Parameters).
    Parameter(usize),
    /// A number in a text, with leading zeros up to a width.
    Digits { slot: usize, width: usize },
}

impl Piece {
    /// The slot of the number that it is.
    pub fn slot(&self) -> Option<usize> {
        match self {
            Self::Parameter(slot) | Self::Digits { slot, .. } => Some(*slot),
            Self::Text(_) | Self::Bytes(_) => None,
        }
    }
}

/// The greatest width of a number: no number has more digits.
const WIDTH_MAX: usize = 20;

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
    #[error("{0:?}: a brace is not closed")]
    Brace(String),
}

impl Statement {
    pub fn of(pieces: Vec<Piece>) -> Self {
        Self {
            pieces,
            is_new: false,
        }
    }

    /// Whether it holds the parameter of a slot as a value, and not as a number in a text.
    pub fn has_parameter(&self, slot: usize) -> bool {
        self.pieces.contains(&Piece::Parameter(slot))
    }

    /// The same statement with its parameters in its text, and a comment with the parameter
    /// `unique_slot`, which makes the text new each time. A statement without parameters stays as it
    /// is.
    pub fn with_new_text(&self, unique_slot: usize) -> Self {
        if !self.pieces.iter().any(|it| it.slot().is_some()) {
            return self.clone();
        }
        let (begin, end) = (" /* ".to_owned(), " */".to_owned());
        let comment = [
            Piece::Text(begin),
            Piece::Parameter(unique_slot),
            Piece::Text(end),
        ];
        Self {
            pieces: [&self.pieces[..], &comment].concat(),
            is_new: true,
        }
    }

    /// Parses a template such as `SET {key} {value}`; `placeholders` maps each name to what replaces
    /// it.
    ///
    /// # Errors
    /// It is empty, a brace is not closed, or a name is unknown.
    pub fn parse(text: &str, placeholders: &[(&str, Vec<Piece>)]) -> Result<Self, StatementError> {
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
            let replacement = replacement(name, placeholders);
            let replacement = replacement.ok_or_else(|| StatementError::Placeholder {
                statement: text.to_owned(),
                name: name.to_owned(),
                known: names(placeholders),
            })?;
            pieces.extend(replacement);
            rest = behind;
        }
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest.to_owned()));
        }
        Ok(Self::of(pieces))
    }
}

/// What replaces a placeholder; `n:8` is `n` with a width of 8 digits at least.
fn replacement(name: &str, placeholders: &[(&str, Vec<Piece>)]) -> Option<Vec<Piece>> {
    let of = |name: &str| placeholders.iter().find(|(known, _)| *known == name);
    if let Some((_, pieces)) = of(name) {
        return Some(pieces.clone());
    }
    let (name, width) = name.split_once(':')?;
    let width = width
        .parse()
        .ok()
        .filter(|it| (1..=WIDTH_MAX).contains(it))?;
    match of(name)?.1[..] {
        [Piece::Digits { slot, .. }] => Some(vec![Piece::Digits { slot, width }]),
        _ => None,
    }
}

fn names(placeholders: &[(&str, Vec<Piece>)]) -> String {
    let names: Vec<&str> = placeholders.iter().map(|(name, _)| *name).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placeholders() -> Vec<(&'static str, Vec<Piece>)> {
        let key = vec![Piece::Text("key:".to_owned()), Piece::Parameter(0)];
        let number = vec![Piece::Digits { slot: 0, width: 1 }];
        vec![
            ("key", key),
            ("value", vec![Piece::Bytes(Vec::new())]),
            ("n", number),
        ]
    }

    #[test]
    fn a_number_has_the_width_that_is_asked_for() {
        let pieces = |text| Statement::parse(text, &placeholders()).map(|it| it.pieces);
        for (text, width) in [("{n}", 1), ("{n:1}", 1), ("{n:12}", 12), ("{n:20}", 20)] {
            assert_eq!(pieces(text).unwrap(), [Piece::Digits { slot: 0, width }]);
        }
        for wrong in [
            "{n:0}",
            "{n:21}",
            "{n:}",
            "{n:x}",
            "{key:12}",
            "{value:3}",
            "{m:3}",
        ] {
            assert!(pieces(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_template_is_pieces() {
        let statement =
            Statement::parse("SET lock:{key}:x {value} PX 10", &placeholders()).unwrap();
        let text = |text: &str| Piece::Text(text.to_owned());
        assert_eq!(
            statement.pieces,
            [
                text("SET lock:"),
                text("key:"),
                Piece::Parameter(0),
                text(":x "),
                Piece::Bytes(Vec::new()),
                text(" PX 10")
            ]
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |text| {
            Statement::parse(text, &placeholders())
                .unwrap_err()
                .to_string()
        };
        assert!(error(" ").contains("an empty command"));
        assert!(error("GET {kye}").contains("\"kye\"; there are key, value, n"));
        assert!(error("GET {key").contains("not closed"));
    }
}
