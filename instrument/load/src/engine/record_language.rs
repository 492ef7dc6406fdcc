//! Statements for engines that execute the record language.

use concurve_records::command;

use crate::workload::{Token, Workload, tokens};

/// The tokens of a workload's statements, by set.
pub fn tokens_by_set<C: FromIterator<Vec<Vec<Token>>>>(workload: &dyn Workload) -> C {
    let set = |set| workload.statements(set).iter().map(tokens).collect();
    (0..workload.sets()).map(set).collect()
}

/// The tokens of a statement, as the parser of the record language reads them.
#[derive(Debug, Clone)]
pub struct Tokens(pub Vec<Token>);

impl command::Words for Tokens {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn word(&self, at: usize) -> &[u8] {
        self.0.get(at).map_or(&[], |it| &it.bytes)
    }
}
