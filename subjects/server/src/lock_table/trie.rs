//! Arguments of one length, found position by position.
//!
//! A compressed trie. A request follows at most two branches at each position (its own byte and the
//! wildcard), or all branches where it has a wildcard itself. So its cost depends on the stored
//! arguments that agree with its beginning, not on all arguments or on the number of patterns.

use std::ops::ControlFlow;

use crate::lock_table::argument::{Text, WILDCARD, bytes_overlap};

/// Arguments of equal length, each with a number.
#[derive(Debug, Default)]
pub struct Trie {
    roots: Vec<Node>,
    count: usize,
}

/// A node contains its label, so that a search reads the arrays of children and little else.
#[derive(Debug)]
struct Node {
    /// Never empty, except for the only argument of length 0.
    label: Text,
    below: Below,
}

#[derive(Debug)]
enum Below {
    Leaf(u32),
    /// Sorted by the first byte of their labels, which differ.
    Branch(Vec<Node>),
}

impl Trie {
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds an argument that is not in it; all have the same length.
    pub fn insert(&mut self, argument: &[u8], number: u32) {
        self.count += 1;
        insert(&mut self.roots, argument, number);
    }

    /// Removes an argument that is in it.
    pub fn remove(&mut self, argument: &[u8]) {
        self.count -= 1;
        remove(&mut self.roots, argument);
    }

    /// Visits the stored arguments that overlap with `asked`, until the visitor breaks.
    pub fn overlapping<B>(
        &self,
        asked: &[u8],
        visit: &mut impl FnMut(u32) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        overlapping(&self.roots, asked, visit)
    }
}

fn first(node: &Node) -> u8 {
    node.label.as_bytes().first().copied().unwrap_or(0)
}

fn position(nodes: &[Node], byte: u8) -> Result<usize, usize> {
    nodes.binary_search_by_key(&byte, first)
}

fn leaf(label: &[u8], number: u32) -> Node {
    Node {
        label: Text::new(label),
        below: Below::Leaf(number),
    }
}

fn insert(nodes: &mut Vec<Node>, argument: &[u8], number: u32) {
    let at = match position(nodes, argument.first().copied().unwrap_or(0)) {
        Ok(at) => at,
        Err(at) => return nodes.insert(at, leaf(argument, number)),
    };
    let node = &mut nodes[at];
    let common = common_length(node.label.as_bytes(), argument);
    if common < node.label.as_bytes().len() {
        split(node, common);
    }
    if let Below::Branch(below) = &mut node.below {
        insert(below, &argument[common..], number);
    }
}

/// Splits a node's label: moves its end into a new child node.
fn split(node: &mut Node, at: usize) {
    let label = node.label.clone();
    let (above, beneath) = label.as_bytes().split_at(at);
    let lower = Node {
        label: Text::new(beneath),
        below: std::mem::replace(&mut node.below, Below::Branch(Vec::new())),
    };
    node.label = Text::new(above);
    node.below = Below::Branch(vec![lower]);
}

fn remove(nodes: &mut Vec<Node>, argument: &[u8]) {
    let Ok(at) = position(nodes, argument.first().copied().unwrap_or(0)) else {
        return;
    };
    let node = &mut nodes[at];
    let label = node.label.as_bytes().len();
    match &mut node.below {
        Below::Leaf(_) => {
            nodes.remove(at);
        }
        Below::Branch(below) => {
            remove(below, &argument[label..]);
            if below.len() == 1 {
                let only = below.pop().expect("it has one");
                node.label = Text::new(&[node.label.as_bytes(), only.label.as_bytes()].concat());
                node.below = only.below;
            }
        }
    }
}

fn common_length(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(a, b)| a == b).count()
}

fn overlapping<B>(
    nodes: &[Node],
    asked: &[u8],
    visit: &mut impl FnMut(u32) -> ControlFlow<B>,
) -> ControlFlow<B> {
    let Some(&byte) = asked.first() else {
        return nodes
            .iter()
            .try_for_each(|node| descend(node, asked, visit));
    };
    if byte == WILDCARD {
        return nodes
            .iter()
            .try_for_each(|node| descend(node, asked, visit));
    }
    for branch in [byte, WILDCARD] {
        if let Ok(at) = position(nodes, branch) {
            descend(&nodes[at], asked, visit)?;
        }
    }
    ControlFlow::Continue(())
}

fn descend<B>(
    node: &Node,
    asked: &[u8],
    visit: &mut impl FnMut(u32) -> ControlFlow<B>,
) -> ControlFlow<B> {
    let label = node.label.as_bytes();
    let (here, rest) = asked.split_at(label.len());
    if !label.iter().zip(here).all(|(a, b)| bytes_overlap(*a, *b)) {
        return ControlFlow::Continue(());
    }
    match &node.below {
        Below::Leaf(number) => visit(*number),
        Below::Branch(below) => overlapping(below, rest, visit),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::lock_table::argument::overlap;

    fn found(trie: &Trie, asked: &[u8]) -> Vec<u32> {
        let mut found = Vec::new();
        let _ = trie.overlapping(asked, &mut |number| {
            found.push(number);
            ControlFlow::<()>::Continue(())
        });
        found.sort_unstable();
        found
    }

    proptest! {
        #[test]
        fn it_finds_what_looking_at_every_argument_finds(
            steps in proptest::collection::vec(("[ab@]{5}", any::<bool>()), 1..60),
            asked in "[abc@]{5}",
        ) {
            let (mut trie, mut plain) = (Trie::default(), BTreeMap::new());
            for (number, (argument, add)) in steps.iter().enumerate() {
                let number = number as u32;
                if *add {
                    if !plain.contains_key(argument) {
                        plain.insert(argument.clone(), number);
                        trie.insert(argument.as_bytes(), number);
                    }
                } else if plain.remove(argument).is_some() {
                    trie.remove(argument.as_bytes());
                }
                let mut expected: Vec<u32> = plain
                    .iter()
                    .filter(|(held, _)| overlap(held.as_bytes(), asked.as_bytes()))
                    .map(|(_, number)| *number)
                    .collect();
                expected.sort_unstable();
                prop_assert_eq!(found(&trie, asked.as_bytes()), expected);
                prop_assert_eq!(trie.is_empty(), plain.is_empty());
            }
        }
    }
}
