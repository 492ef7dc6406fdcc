//! The exact arguments of a table, found by the positions that a generic request leaves fixed.
//!
//! A view is made when a request with a new pattern of wildcards comes, which costs one pass over
//! the locks; from then on it is kept up to date, and requests with that pattern look at the
//! arguments that they overlap with, and at no others.

use std::hash::{BuildHasher, Hasher};

use hashbrown::{DefaultHashBuilder, HashMap, HashTable};

use crate::locks::argument::WILDCARD;
use crate::locks::entry::Groups;
use crate::locks::slab::NONE;

#[derive(Debug)]
pub struct View {
    /// Positions that are not wild, ascending; all arguments are equally long.
    fixed: Box<[u8]>,
    length: usize,
    /// First group of each chain of groups that agree at the fixed positions.
    heads: HashTable<u32>,
    /// Neighbours in the chain: previous, next.
    links: HashMap<u32, [u32; 2]>,
    hasher: DefaultHashBuilder,
    /// When it was last asked, in requests.
    pub asked: u64,
}

impl View {
    /// An empty view for requests that are wild where `asked` is.
    pub fn new(asked: &[u8], hasher: DefaultHashBuilder) -> Self {
        let wild = |byte: &u8| *byte == WILDCARD;
        let fixed = (0..asked.len()).filter(|at| !wild(&asked[*at]));
        Self {
            fixed: fixed.map(|at| at as u8).collect(),
            length: asked.len(),
            heads: HashTable::new(),
            links: HashMap::default(),
            hasher,
            asked: 0,
        }
    }

    /// Whether it serves requests that are wild where `asked` is.
    pub fn serves(&self, asked: &[u8]) -> bool {
        let fixed = asked.iter().enumerate().filter(|(_, b)| **b != WILDCARD);
        self.length == asked.len() && fixed.map(|(at, _)| at as u8).eq(self.fixed.iter().copied())
    }

    pub fn insert(&mut self, group: u32, groups: &Groups) {
        let argument = groups[group].argument.as_bytes();
        let (hash, equal) = (self.hash(argument), equal(&self.fixed, groups, argument));
        match self.heads.find_mut(hash, |head| equal(*head)) {
            Some(head) => {
                let next = std::mem::replace(head, group);
                self.links.insert(group, [NONE, next]);
                self.links.get_mut(&next).expect("linked")[0] = group;
            }
            None => {
                let (fixed, hasher) = (&self.fixed, &self.hasher);
                let rehash = |head: &u32| hash_of(hasher, fixed, groups[*head].argument.as_bytes());
                self.heads.insert_unique(hash, group, rehash);
                self.links.insert(group, [NONE, NONE]);
            }
        }
    }

    /// Takes out a group that is in it and still stored in `groups`.
    pub fn remove(&mut self, group: u32, groups: &Groups) {
        let Some([previous, next]) = self.links.remove(&group) else {
            return;
        };
        if next != NONE {
            self.links.get_mut(&next).expect("linked")[0] = previous;
        }
        if previous != NONE {
            self.links.get_mut(&previous).expect("linked")[1] = next;
            return;
        }
        let hash = self.hash(groups[group].argument.as_bytes());
        if let Ok(mut head) = self.heads.find_entry(hash, |head| *head == group) {
            if next == NONE {
                head.remove();
            } else {
                *head.get_mut() = next;
            }
        }
    }

    /// The groups that agree with `asked` wherever it is not wild.
    pub fn matching<'a>(&'a self, asked: &[u8], groups: &Groups) -> impl Iterator<Item = u32> + 'a {
        let equal = equal(&self.fixed, groups, asked);
        let head = self.heads.find(self.hash(asked), |head| equal(*head));
        std::iter::successors(head.copied(), |group| {
            let next = self.links[group][1];
            (next != NONE).then_some(next)
        })
    }

    fn hash(&self, argument: &[u8]) -> u64 {
        hash_of(&self.hasher, &self.fixed, argument)
    }
}

fn hash_of(hasher: &DefaultHashBuilder, fixed: &[u8], argument: &[u8]) -> u64 {
    let mut state = hasher.build_hasher();
    for at in fixed {
        state.write_u8(argument[usize::from(*at)]);
    }
    state.finish()
}

fn equal(fixed: &[u8], groups: &Groups, argument: &[u8]) -> impl Fn(u32) -> bool {
    move |group| {
        let other = groups[group].argument.as_bytes();
        let at = |at: &u8| usize::from(*at);
        fixed.iter().all(|it| other[at(it)] == argument[at(it)])
    }
}
