//! Statements for engines that take the record language.

use concurve_records::command;

use crate::workload::Workload;
use crate::workload::words::{Word, words};

/// The words of a workload's statements, by set.
pub fn by_set<C: FromIterator<Vec<Vec<Word>>>>(workload: &dyn Workload) -> C {
    let set = |set| workload.statements(set).iter().map(words).collect();
    (0..workload.sets()).map(set).collect()
}

/// The words of a statement, as the record language takes them.
#[derive(Debug, Clone)]
pub struct Words(pub Vec<Word>);

impl command::Words for Words {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn word(&self, at: usize) -> &[u8] {
        self.0.get(at).map_or(&[], |it| &it.bytes)
    }
}
