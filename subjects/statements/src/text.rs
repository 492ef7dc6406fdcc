//! The language of statements, and its compiler.
//!
//! ```text
//! GET file field KEY value [FOR UPDATE]
//! ADD file field value KEY value
//! INSERT file value value …
//! DELETE file KEY value
//! COUNT file FROM value TO value
//! SUM file field FROM value TO value
//! ```
//! A value is `?`, a parameter of each execution, or an integer. Words are separated by blanks;
//! keywords are case-insensitive. The first field of a file is its key. Text between the words `/*`
//! and `*/` is a comment.

use crate::error::StatementError;
use crate::plan::{FileId, Operand, Operation, Plan};

/// The files and their fields.
pub trait Catalogue {
    fn file(&self, name: &str) -> Option<FileColumns>;

    /// Changes with each change of a file: statements with an older plan are compiled anew.
    fn version(&self) -> u64;
}

/// What the compiler needs to know about a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileColumns {
    pub file: FileId,
    /// The names of its fields, in the order of an `INSERT`.
    pub fields: Vec<String>,
}

/// The verbs of statements.
const VERBS: &str = "GET, ADD, INSERT, DELETE, COUNT, SUM";

/// The words of a statement that are not parsed yet.
struct Words<'a, C> {
    text: &'a str,
    words: std::str::SplitAsciiWhitespace<'a>,
    catalogue: &'a C,
    parameters: usize,
}

/// Compiles a statement.
///
/// # Errors
/// If the text is no statement, or names a file or field that the catalogue does not have.
pub fn compile<C: Catalogue>(text: &str, catalogue: &C) -> Result<Plan, StatementError> {
    // Before the lookups: a change during the compilation makes the plan outdated.
    let version = catalogue.version();
    let mut words = Words {
        text,
        words: text.split_ascii_whitespace(),
        catalogue,
        parameters: 0,
    };
    let operation = words.operation()?;
    if let Some(word) = words.word()? {
        return Err(words.unexpected(word));
    }
    Ok(Plan {
        operation,
        parameters: words.parameters,
        version,
    })
}

impl<'a, C: Catalogue> Words<'a, C> {
    fn operation(&mut self) -> Result<Operation, StatementError> {
        let verb = self.next(VERBS)?;
        match verb.to_ascii_uppercase().as_str() {
            "GET" => {
                let (columns, field) = self.file_and_field()?;
                let key = self.after("KEY")?;
                let for_update = self.for_update()?;
                Ok(Operation::Get {
                    file: columns.file,
                    field,
                    key,
                    for_update,
                })
            }
            "ADD" => {
                let (columns, field) = self.file_and_field()?;
                if field == 0 {
                    let why = "the first field is the key: DELETE the record, and INSERT another";
                    return Err(self.wrong(why));
                }
                let delta = self.value()?;
                let key = self.after("KEY")?;
                Ok(Operation::Add {
                    file: columns.file,
                    field,
                    delta,
                    key,
                })
            }
            "INSERT" => {
                let columns = self.file()?;
                let values: Result<_, _> = columns.fields.iter().map(|_| self.value()).collect();
                Ok(Operation::Insert {
                    file: columns.file,
                    values: values?,
                })
            }
            "DELETE" => {
                let file = self.file()?.file;
                let key = self.after("KEY")?;
                Ok(Operation::Delete { file, key })
            }
            "COUNT" => {
                let file = self.file()?.file;
                let (from, to) = (self.after("FROM")?, self.after("TO")?);
                Ok(Operation::Count { file, from, to })
            }
            "SUM" => {
                let (columns, field) = self.file_and_field()?;
                let (from, to) = (self.after("FROM")?, self.after("TO")?);
                Ok(Operation::Sum {
                    file: columns.file,
                    field,
                    from,
                    to,
                })
            }
            _ => Err(self.wrong(&format!("'{verb}' is not one of {VERBS}"))),
        }
    }

    /// The next word outside of comments.
    fn word(&mut self) -> Result<Option<&'a str>, StatementError> {
        loop {
            match self.words.next() {
                Some("/*") if self.words.by_ref().any(|it| it == "*/") => {}
                Some("/*") => return Err(self.wrong("the comment has no */")),
                other => return Ok(other),
            }
        }
    }

    fn next(&mut self, what: &str) -> Result<&'a str, StatementError> {
        match self.word()? {
            Some(word) => Ok(word),
            None => Err(self.wrong(&format!("it ends where {what} is expected"))),
        }
    }

    fn file(&mut self) -> Result<FileColumns, StatementError> {
        let name = self.next("the name of a file")?.to_owned();
        let columns = self.catalogue.file(&name);
        columns.ok_or(StatementError::NoFile(name))
    }

    fn file_and_field(&mut self) -> Result<(FileColumns, usize), StatementError> {
        let file = self.next("the name of a file")?.to_owned();
        let columns = self.catalogue.file(&file);
        let columns = columns.ok_or_else(|| StatementError::NoFile(file.clone()))?;
        let field = self.next("the name of a field")?;
        match columns.fields.iter().position(|it| it == field) {
            Some(at) => Ok((columns, at)),
            None => Err(StatementError::NoField {
                file,
                field: field.to_owned(),
                known: columns.fields.join(", "),
            }),
        }
    }

    fn after(&mut self, keyword: &str) -> Result<Operand, StatementError> {
        self.keyword(keyword)?;
        self.value()
    }

    /// Whether the statement ends with `FOR UPDATE`.
    fn for_update(&mut self) -> Result<bool, StatementError> {
        match self.word()? {
            None => Ok(false),
            Some(word) if word.eq_ignore_ascii_case("FOR") => {
                self.keyword("UPDATE")?;
                Ok(true)
            }
            Some(word) => Err(self.unexpected(word)),
        }
    }

    fn keyword(&mut self, keyword: &str) -> Result<(), StatementError> {
        let word = self.next(keyword)?;
        if !word.eq_ignore_ascii_case(keyword) {
            let why = format!("'{word}' instead of {keyword}");
            return Err(self.wrong(&why));
        }
        Ok(())
    }

    fn value(&mut self) -> Result<Operand, StatementError> {
        let word = self.next("a value")?;
        if word == "?" {
            self.parameters += 1;
            return Ok(Operand::Parameter(self.parameters - 1));
        }
        match word.parse() {
            Ok(value) => Ok(Operand::Literal(value)),
            Err(_) => {
                let why = format!("'{word}' is neither ? nor a 64-bit integer");
                Err(self.wrong(&why))
            }
        }
    }

    fn unexpected(&self, word: &str) -> StatementError {
        self.wrong(&format!("unexpected '{word}' after the end"))
    }

    fn wrong(&self, why: &str) -> StatementError {
        StatementError::Text {
            text: self.text.to_owned(),
            why: why.to_owned(),
        }
    }
}
