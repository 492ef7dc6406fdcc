//! The lock service's commands.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::{Call, Fault, Flow, number, shown};
use crate::hall::{Notes, count};
use crate::locks::argument::{LENGTH_MAX, overlap};
use crate::locks::entry::OwnerId;
use crate::locks::mode::{Mode, Scope};
use crate::locks::overflow::picture;
use crate::locks::owners::Part;
use crate::locks::request::{Counts, Holder, Listed, Refusal, Request, Subject};

/// Longest wait for a lock, and the most locks on a page of a list.
const WAIT_MS_MAX: u64 = 60_000;
const PAGE_MAX: u64 = 1000;
/// Places looked at for a page, however few of them match.
const LOOKED_AT_MAX: usize = 100_000;
/// Owners that one connection may speak for at once.
const OWNERS_MAX: usize = 1024;

struct Asked<'a> {
    request: Request<'a>,
    promote: bool,
    wait: Duration,
}

pub fn lock(call: &mut Call) -> Result<Flow, Fault> {
    let asked = parse(call)?;
    let hall = call.hall;
    let result = if asked.promote {
        count(&hall.counters.promotions);
        let promoted = hall.locks.promote(&asked.request, &mut Notes(hall));
        promoted.map(|(counts, _)| counts)
    } else {
        hall.locks.lock(&asked.request, &mut Notes(hall))
    };
    if let Err(Refusal::Collision(_)) = result
        && must_wait(call, asked.wait)
    {
        return Ok(Flow::Wait);
    }
    call.session.waits_until = None;
    match result {
        Ok(counts) => {
            count(&hall.counters.granted);
            call.reply.integer(held(counts, asked.request.scope));
            Ok(Flow::Done)
        }
        Err(refusal) => Err(refused(call, refusal, &asked)),
    }
}

pub fn unlock(call: &mut Call) -> Result<Flow, Fault> {
    let asked = parse(call)?;
    if asked.promote {
        return Err(Fault::usage("R is no mode that is held: unlock O or E"));
    }
    let hall = call.hall;
    match hall.locks.unlock(&asked.request, &mut Notes(hall)) {
        Ok(counts) => {
            count(&hall.counters.unlocks);
            call.reply.integer(held(counts, Scope::BOTH));
            Ok(Flow::Done)
        }
        Err(refusal) => Err(refused(call, refusal, &asked)),
    }
}

/// `LOCK` and `UNLOCK` have the same shape.
fn parse<'a>(call: &mut Call<'a>) -> Result<Asked<'a>, Fault> {
    let arguments = call.arguments;
    let subject = Subject {
        table: text(arguments.at(1), "table")?,
        argument: text(arguments.at(2), "argument")?,
    };
    let letter = arguments.at(3);
    let promote = letter.eq_ignore_ascii_case(b"R");
    let mode = match promote {
        true => Mode::Exclusive,
        false => Mode::from_letter(letter).ok_or_else(|| {
            Fault::usage(format!("mode '{}' is none of S, E, X, O, R", shown(letter)))
        })?,
    };
    let (owner, part) = call.session.owner(call.hall);
    let mut asked = Asked {
        request: Request {
            subject,
            mode,
            owner,
            scope: match part {
                Part::Dialog => Scope::DIALOG,
                Part::Update => Scope::UPDATE,
            },
            backup: false,
        },
        promote,
        wait: Duration::ZERO,
    };
    let mut options = arguments.from(4);
    while let Some(option) = options.next() {
        if option.eq_ignore_ascii_case(b"SCOPE") {
            let digit = options.next().unwrap_or_default();
            asked.request.scope = Scope::from_digit(digit)
                .ok_or_else(|| Fault::usage("SCOPE is 1 (dialog), 2 (update task) or 3 (both)"))?;
        } else if option.eq_ignore_ascii_case(b"WAIT") {
            let wait_ms = number(options.next().unwrap_or_default(), "WAIT")?;
            asked.wait = Duration::from_millis(wait_ms.min(WAIT_MS_MAX));
        } else if option.eq_ignore_ascii_case(b"BACKUP") {
            asked.request.backup = true;
        } else {
            let option = shown(option);
            return Err(Fault::usage(format!(
                "option '{option}' is none of SCOPE, WAIT, BACKUP"
            )));
        }
    }
    check_backup(call, &asked.request)?;
    Ok(asked)
}

fn check_backup(call: &Call, request: &Request) -> Result<(), Fault> {
    if !request.backup {
        return Ok(());
    }
    if !call.hall.has_backup() {
        let message = "BACKUP: the server keeps no backup file; start it with --backup FILE";
        return Err(Fault::new("NOBACKUP", message));
    }
    if !request.scope.update {
        return Err(Fault::usage(
            "BACKUP keeps the update task's part, and SCOPE 1 has none: use SCOPE 2 or 3",
        ));
    }
    Ok(())
}

fn text<'a>(text: &'a [u8], what: &str) -> Result<&'a [u8], Fault> {
    if text.len() > LENGTH_MAX {
        let length = text.len();
        return Err(Fault::usage(format!(
            "the {what} has {length} bytes; {LENGTH_MAX} are allowed"
        )));
    }
    Ok(text)
}

/// The cumulation that the client cares about.
fn held(counts: Counts, scope: Scope) -> i64 {
    let dialog = if scope.dialog { counts.dialog } else { 0 };
    let update = if scope.update { counts.update } else { 0 };
    i64::from(dialog.max(update))
}

fn must_wait(call: &mut Call, wait: Duration) -> bool {
    let now = Instant::now();
    let until = *call.session.waits_until.get_or_insert(now + wait);
    now < until
}

fn refused(call: &Call, refusal: Refusal, asked: &Asked) -> Fault {
    let hall = call.hall;
    let Subject { table, argument } = asked.request.subject;
    let what = || format!("{} {}", shown(table), shown(argument));
    match refusal {
        Refusal::Collision(holder) => {
            count(&hall.counters.collisions);
            let who = holder.map_or("another owner holds it".to_owned(), |it| by(call, it));
            Fault::new("COLLISION", format!("{}: {who}", what()))
        }
        Refusal::Full => {
            count(&hall.counters.full);
            note_overflow(call);
            let capacity = hall.room.capacity();
            let remedy = "OVERFLOWS says who holds most; --capacity makes it larger";
            Fault::new(
                "FULL",
                format!("the table holds {capacity} locks; {remedy}"),
            )
        }
        Refusal::NotHeld => {
            count(&hall.counters.not_held);
            let mode = if asked.promote {
                Mode::Optimistic
            } else {
                asked.request.mode
            };
            Fault::new("NOTHELD", format!("{}: no {} held", what(), mode.letter()))
        }
    }
}

fn by(call: &Call, holder: Holder) -> String {
    let owners = call.hall.owners.lock();
    let name = shown(owners.name(holder.owner));
    format!("{} held by {name}", holder.mode.letter())
}

fn note_overflow(call: &Call) {
    let hall = call.hall;
    // The table is latched while it is looked at: the overflows must not be, meanwhile.
    let begins = hall.overflows.lock().refused(hall.now_ms());
    if begins {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
        let unix_ms = since_epoch.map_or(0, |it| it.as_millis() as u64);
        let overflow = picture(&hall.locks, unix_ms);
        hall.overflows.lock().begin(overflow);
    }
}

pub fn unlock_all(call: &mut Call) -> Result<Flow, Fault> {
    let (own, part) = call.session.owner(call.hall);
    let (mut owner, mut scope) = (Some(own), None);
    let mut options = call.arguments.from(1);
    while let Some(option) = options.next() {
        match &option.to_ascii_uppercase()[..] {
            b"DIALOG" => scope = Some(Scope::DIALOG),
            b"UPDATE" => scope = Some(Scope::UPDATE),
            b"BOTH" => scope = Some(Scope::BOTH),
            b"OWNER" => owner = find_owner(call, options.next().unwrap_or_default()),
            _ => {
                let option = shown(option);
                let allowed = "DIALOG, UPDATE, BOTH, OWNER";
                return Err(Fault::usage(format!(
                    "option '{option}' is none of {allowed}"
                )));
            }
        }
    }
    let own_part = match part {
        Part::Dialog => Scope::DIALOG,
        Part::Update => Scope::UPDATE,
    };
    let freed = owner.map_or(0, |owner| release(call, owner, scope.unwrap_or(own_part)));
    call.reply.integer(freed as i64);
    Ok(Flow::Done)
}

fn release(call: &Call, owner: OwnerId, scope: Scope) -> u64 {
    let hall = call.hall;
    let change = hall.owners.lock().change(owner);
    let freed = hall.locks.release_all(owner, scope, &mut Notes(hall));
    hall.counters.unlocks.fetch_add(freed, Relaxed);
    if !hall.locks.holds(owner) {
        hall.owners.lock().forget(owner, change);
    }
    freed
}

fn find_owner(call: &Call, name: &[u8]) -> Option<OwnerId> {
    call.hall.owners.lock().find(name)
}

pub fn owner(call: &mut Call) -> Result<Flow, Fault> {
    let arguments = call.arguments;
    let Some(name) = arguments.get(1) else {
        let (owner, part) = call.session.owner(call.hall);
        let name = call.hall.owners.lock().name(owner).to_owned();
        call.reply.array(2);
        call.reply.bulk(&name);
        call.reply.bulk(match part {
            Part::Dialog => b"dialog",
            Part::Update => b"update",
        });
        return Ok(Flow::Done);
    };
    let part = match arguments.get(2).map(<[u8]>::to_ascii_uppercase).as_deref() {
        None | Some(b"DIALOG") => Part::Dialog,
        Some(b"UPDATE") => Part::Update,
        _ => return Err(Fault::usage("the part of an owner is DIALOG or UPDATE")),
    };
    if text(name, "name of the owner")?.is_empty() {
        return Err(Fault::usage("an owner needs a name"));
    }
    if call.session.owners() >= OWNERS_MAX {
        return Err(Fault::usage(format!(
            "this connection holds locks of {OWNERS_MAX} owners; UNLOCKALL for some of them first"
        )));
    }
    call.session.speak_for(name, part, call.hall);
    call.reply.status("OK");
    Ok(Flow::Done)
}

/// Which locks a list shows.
#[derive(Default)]
struct Filter<'a> {
    table: Option<&'a [u8]>,
    argument: Option<&'a [u8]>,
    owner: Option<&'a [u8]>,
    mode: Option<Mode>,
}

fn held_mode(letter: &[u8]) -> Result<Mode, Fault> {
    let mode = Mode::from_letter(letter);
    mode.ok_or_else(|| Fault::usage(format!("mode '{}' is none of S, E, X, O", shown(letter))))
}

pub fn list(call: &mut Call) -> Result<Flow, Fault> {
    let (mut filter, mut cursor, mut page) = (Filter::default(), 0, 100);
    let mut options = call.arguments.from(1);
    while let Some(option) = options.next() {
        let value = options
            .next()
            .ok_or_else(|| Fault::usage(format!("option '{}' needs a value", shown(option))))?;
        match &option.to_ascii_uppercase()[..] {
            b"CURSOR" => cursor = number(value, "CURSOR")?,
            b"COUNT" => page = number(value, "COUNT")?.clamp(1, PAGE_MAX),
            b"TABLE" => filter.table = Some(value),
            b"ARGUMENT" => filter.argument = Some(value),
            b"OWNER" => filter.owner = Some(value),
            b"MODE" => filter.mode = Some(held_mode(value)?),
            _ => {
                let option = shown(option);
                let allowed = "CURSOR, COUNT, TABLE, ARGUMENT, OWNER, MODE";
                return Err(Fault::usage(format!(
                    "option '{option}' is none of {allowed}"
                )));
            }
        }
    }
    let owner = filter.owner.map(|name| find_owner(call, name));
    let mut rows = Vec::new();
    let next = walk(call, cursor, page as usize, &mut |listed| {
        let subject = listed.subject;
        let shows = filter.table.is_none_or(|it| it == subject.table)
            && filter
                .argument
                .is_none_or(|it| overlap(it, subject.argument))
            && owner.is_none_or(|it| it == Some(listed.entry.owner))
            && filter.mode.is_none_or(|it| it == listed.entry.mode);
        if shows {
            rows.push(Row::new(listed));
        }
        shows
    });
    call.reply.array(2);
    call.reply.bulk(next.to_string().as_bytes());
    call.reply.array(rows.len());
    for row in rows {
        row.write(call);
    }
    Ok(Flow::Done)
}

/// Calls with locks from a cursor on, until `page` of them were taken or enough were looked at.
/// Returns the cursor to go on with, 0 at the end. It says in which book, and from which place on.
fn walk(call: &Call, cursor: u64, page: usize, take: &mut dyn FnMut(Listed) -> bool) -> u64 {
    let (first_book, first_place) = ((cursor >> 32) as usize, cursor as u32);
    let (mut taken, mut looked_at, mut book_number, mut next) = (0, 0, 0, 0);
    call.hall.locks.each_book(|book| {
        let number = book_number;
        book_number += 1;
        if number < first_book || next != 0 {
            return;
        }
        let start = if number == first_book { first_place } else { 0 };
        for place in start..book.places() as u32 {
            if taken == page || looked_at == LOOKED_AT_MAX {
                next = (number as u64) << 32 | u64::from(place);
                return;
            }
            looked_at += 1;
            taken += usize::from(book.listed(place).is_some_and(&mut *take));
        }
    });
    next
}

/// A lock, copied out while its book was latched.
struct Row {
    table: Box<[u8]>,
    argument: Box<[u8]>,
    mode: Mode,
    owner: OwnerId,
    counts: Counts,
    backup: bool,
}

impl Row {
    fn new(listed: Listed) -> Self {
        Self {
            table: listed.subject.table.into(),
            argument: listed.subject.argument.into(),
            mode: listed.entry.mode,
            owner: listed.entry.owner,
            counts: listed.entry.counts(),
            backup: listed.entry.backup,
        }
    }

    fn write(&self, call: &mut Call) {
        let owner = {
            let owners = call.hall.owners.lock();
            owners.name(self.owner).to_owned()
        };
        let reply = &mut call.reply;
        reply.map(7);
        let texts: [(&str, &[u8]); 4] = [
            ("table", &self.table),
            ("argument", &self.argument),
            ("mode", self.mode.letter().as_bytes()),
            ("owner", &owner),
        ];
        for (name, text) in texts {
            reply.bulk(name.as_bytes());
            reply.bulk(text);
        }
        let numbers = [
            ("dialog", self.counts.dialog),
            ("update", self.counts.update),
            ("backup", u32::from(self.backup)),
        ];
        for (name, value) in numbers {
            reply.bulk(name.as_bytes());
            reply.integer(i64::from(value));
        }
    }
}

pub fn statistics(call: &mut Call) -> Result<Flow, Fault> {
    let figures = super::server::lock_figures(call.hall);
    call.reply.map(figures.len());
    for (name, value) in figures {
        call.reply.bulk(name.as_bytes());
        call.reply.integer(value as i64);
    }
    Ok(Flow::Done)
}

pub fn overflows(call: &mut Call) -> Result<Flow, Fault> {
    let kept: Vec<_> = {
        let overflows = call.hall.overflows.lock();
        overflows.kept().cloned().collect()
    };
    call.reply.array(kept.len());
    for overflow in kept.iter().rev() {
        let reply = &mut call.reply;
        reply.map(4);
        reply.bulk(b"unix_ms");
        reply.integer(overflow.unix_ms as i64);
        reply.bulk(b"refused");
        reply.integer(overflow.refused as i64);
        reply.bulk(b"owners");
        reply.array(overflow.owners.len());
        for (owner, locks) in &overflow.owners {
            let owners = call.hall.owners.lock();
            reply.array(2);
            reply.bulk(owners.name(*owner));
            reply.integer(*locks as i64);
        }
        reply.bulk(b"arguments");
        reply.array(overflow.arguments.len());
        for (table, argument, locks) in &overflow.arguments {
            reply.array(3);
            reply.bulk(table);
            reply.bulk(argument);
            reply.integer(*locks as i64);
        }
    }
    Ok(Flow::Done)
}
