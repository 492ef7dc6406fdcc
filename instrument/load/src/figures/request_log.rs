//! The times of each request, as CSV: one row for each request that was due in the measured time.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::counts::requests::RequestTimes;
use crate::error::Error;

use crate::plan::Plan;

/// A log that is being written.
pub struct RequestLog {
    path: PathBuf,
    file: BufWriter<File>,
    kinds: Vec<String>,
}

impl RequestLog {
    /// Creates the file with its first line, before anything is measured.
    pub fn create(path: &Path, plan: &Plan) -> Result<Self, Error> {
        let file = concurve_files::create(path)
            .map_err(|error| Error::RequestLog(path.to_owned(), error))?;
        let kinds = plan.workload.kinds();
        let mut log = Self {
            path: path.to_owned(),
            file: BufWriter::new(file),
            kinds: kinds.iter().map(|it| in_quotes(&it.name)).collect(),
        };
        log.write("session,kind,due_ns,sent_ns,answered_ns,outcome\n")?;
        Ok(log)
    }

    /// Writes a row for each request.
    pub fn requests(&mut self, requests: &[RequestTimes]) -> Result<(), Error> {
        let number = |it: Option<u64>| it.map_or(String::new(), |it| it.to_string());
        for request in requests {
            let row = format!(
                "{},{},{},{},{},{}\n",
                number(request.session),
                self.kinds[request.kind],
                request.due_ns,
                number(request.sent_ns),
                number(request.answered_ns),
                request.outcome.name()
            );
            self.write(&row)?;
        }
        Ok(())
    }

    fn write(&mut self, text: &str) -> Result<(), Error> {
        let written = self.file.write_all(text.as_bytes());
        written.map_err(|error| Error::RequestLog(self.path.clone(), error))
    }

    /// Flushes the file.
    pub fn end(mut self) -> Result<(), Error> {
        let flushed = self.file.flush();
        flushed.map_err(|error| Error::RequestLog(self.path.clone(), error))
    }
}

/// A cell of a CSV file.
fn in_quotes(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_with_a_comma_is_in_quotes() {
        assert_eq!(in_quotes("get"), "get");
        assert_eq!(in_quotes("SET \"a\", b"), "\"SET \"\"a\"\", b\"");
    }
}
