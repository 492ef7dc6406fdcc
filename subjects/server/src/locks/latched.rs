//! The lock table shared among threads, behind one latch or many: the dial `--latching`.
//!
//! `Global`: one book behind one mutex. `Record`: exact arguments are spread over stripes with a
//! mutex each, by the hash of table and argument, and generic ones live in a book of their own. An
//! exact request reads the generic book and latches one stripe; a generic request, or one that
//! touches many arguments, has everything to itself. Latches are always taken in that order.

use std::hash::BuildHasher;
use std::sync::Arc;

use concurve_latch::{Class, Mutex, MutexGuard, RwLock, RwLockWriteGuard};
use hashbrown::DefaultHashBuilder;

use crate::locks::argument::is_generic;
use crate::locks::book::Book;
use crate::locks::entry::OwnerId;
use crate::locks::mode::{Rules, Scope};
use crate::locks::request::{Counts, Journal, Listed, Refusal, Request, Subject};
use crate::locks::room::Room;

/// Latches of the exact arguments under `Record`.
const STRIPES: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Latching {
    /// One latch around everything
    Global,
    /// A latch for each small part of the table
    Record,
}

#[derive(Debug)]
pub enum LockTable {
    Global(Mutex<Book>),
    Record(Striped),
}

#[derive(Debug)]
pub struct Striped {
    generic: RwLock<Book>,
    exact: Box<[Mutex<Book>]>,
    hasher: DefaultHashBuilder,
}

/// Everything latched.
struct Whole<'a> {
    generic: RwLockWriteGuard<'a, Book>,
    exact: Vec<MutexGuard<'a, Book>>,
}

impl LockTable {
    pub fn new(latching: Latching, rules: Rules, room: Arc<Room>) -> Self {
        let book = || Book::new(rules, Arc::clone(&room));
        let stripe = Class::named("lock table");
        match latching {
            Latching::Global => LockTable::Global(stripe.mutex(book())),
            Latching::Record => LockTable::Record(Striped {
                generic: Class::named("lock table, generic").rwlock(book()),
                exact: (0..STRIPES).map(|_| stripe.mutex(book())).collect(),
                hasher: DefaultHashBuilder::default(),
            }),
        }
    }

    /// Asks for a lock, granted at once or refused.
    pub fn lock(&self, asked: &Request, journal: &mut dyn Journal) -> Result<Counts, Refusal> {
        match self {
            LockTable::Global(book) => book.lock().lock(asked, journal),
            LockTable::Record(striped) => striped.lock(asked, journal),
        }
    }

    /// Gives back one hold of a lock.
    pub fn unlock(&self, asked: &Request, journal: &mut dyn Journal) -> Result<Counts, Refusal> {
        match self {
            LockTable::Global(book) => book.lock().unlock(asked, journal),
            LockTable::Record(striped) if is_generic(asked.subject.argument) => {
                let mut generic = striped.generic.write();
                generic.unlock(asked, journal)
            }
            LockTable::Record(striped) => striped.stripe(asked.subject).unlock(asked, journal),
        }
    }

    /// Promotes an O to E; says how many optimistic locks of others that ended.
    pub fn promote(
        &self,
        asked: &Request,
        journal: &mut dyn Journal,
    ) -> Result<(Counts, u64), Refusal> {
        match self {
            LockTable::Global(book) => {
                let mut book = book.lock();
                book.prepare(asked.subject);
                promote(&mut [&mut book], 0, asked, journal)
            }
            LockTable::Record(striped) => {
                let mut whole = striped.whole();
                // The generic book comes first among those concerned.
                let at = usize::from(!is_generic(asked.subject.argument));
                let mut books = whole.concerned(striped, asked.subject);
                promote(&mut books, at, asked, journal)
            }
        }
    }

    /// Ends all holds of the parts in `scope` of an owner; says how many locks that freed.
    pub fn release_all(&self, owner: OwnerId, scope: Scope, journal: &mut dyn Journal) -> u64 {
        let mut freed = 0;
        self.each_book(|book| freed += book.release_all(owner, scope, journal));
        freed
    }

    /// Whether an owner holds anything.
    pub fn holds(&self, owner: OwnerId) -> bool {
        let mut holds = false;
        self.each_book(|book| holds |= book.holds(owner));
        holds
    }

    /// Calls with every lock, one latch after the other. Linear: for tests and small tables.
    pub fn each(&self, call: &mut dyn FnMut(Listed)) {
        self.each_book(|book| {
            let places = 0..book.places() as u32;
            places.filter_map(|at| book.listed(at)).for_each(&mut *call);
        });
    }

    /// Calls with each book in turn, latched alone.
    pub fn each_book(&self, mut call: impl FnMut(&mut Book)) {
        match self {
            LockTable::Global(book) => call(&mut book.lock()),
            LockTable::Record(striped) => {
                call(&mut striped.generic.write());
                let stripes = striped.exact.iter();
                stripes.for_each(|book| call(&mut book.lock()));
            }
        }
    }
}

impl Striped {
    fn lock(&self, asked: &Request, journal: &mut dyn Journal) -> Result<Counts, Refusal> {
        if !is_generic(asked.subject.argument) {
            let generic = self.generic.read();
            let mut stripe = self.stripe(asked.subject);
            return match stripe.collision(asked).or_else(|| generic.collision(asked)) {
                Some(refusal) => Err(refusal),
                None => stripe.grant(asked, journal),
            };
        }
        let mut whole = self.whole();
        for book in &mut whole.exact {
            book.prepare(asked.subject);
            if let Some(refusal) = book.collision(asked) {
                return Err(refusal);
            }
        }
        match whole.generic.collision(asked) {
            Some(refusal) => Err(refusal),
            None => whole.generic.grant(asked, journal),
        }
    }

    fn stripe(&self, subject: Subject) -> MutexGuard<'_, Book> {
        self.exact[self.number(subject)].lock()
    }

    fn number(&self, subject: Subject) -> usize {
        let hash = self.hasher.hash_one((subject.table, subject.argument));
        hash as usize % self.exact.len()
    }

    fn whole(&self) -> Whole<'_> {
        let generic = self.generic.write();
        let stripes = self.exact.iter();
        Whole {
            generic,
            exact: stripes.map(|it| it.lock()).collect(),
        }
    }
}

impl Whole<'_> {
    /// The books that may have something that overlaps with a subject; prepared to be asked.
    fn concerned(&mut self, striped: &Striped, subject: Subject) -> Vec<&mut Book> {
        let mut books: Vec<&mut Book> = vec![&mut self.generic];
        if is_generic(subject.argument) {
            books.extend(self.exact.iter_mut().map(|book| &mut **book));
        } else {
            books.push(&mut self.exact[striped.number(subject)]);
        }
        for book in &mut books {
            book.prepare(subject);
        }
        books
    }
}

fn promote(
    books: &mut [&mut Book],
    at: usize,
    asked: &Request,
    journal: &mut dyn Journal,
) -> Result<(Counts, u64), Refusal> {
    if !books[at].has_optimistic(asked) {
        return Err(Refusal::NotHeld);
    }
    let mut collisions = books.iter().filter_map(|it| it.promotion_collision(asked));
    if let Some(refusal) = collisions.next() {
        return Err(refusal);
    }
    let counts = books[at].promote(asked, journal)?;
    let ended = books.iter_mut().map(|it| it.end_optimistic(asked, journal));
    Ok((counts, ended.sum()))
}
