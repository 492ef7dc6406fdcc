//! The lock service's commands.

pub mod list;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::call::{Call, Fault, number, shown};
use crate::lock_table::argument::LENGTH_MAX;
use crate::lock_table::entry::OwnerId;
use crate::lock_table::mode::{Mode, Scope};
use crate::lock_table::request::{Counts, Holder, Refusal, Request, Subject};
use crate::locks::owners::Part;
use crate::locks::service::LockService;
use crate::request::Flow;

/// Maximum time to wait for a lock.
const WAIT_MS_MAX: u64 = 60_000;

/// Maximum number of owners that one connection may act for.
const OWNERS_MAX: usize = 1024;

struct Asked<'a> {
    request: Request<'a>,
    promote: bool,
    wait: Duration,
}

pub fn lock(call: &mut Call<LockService>) -> Result<Flow, Fault> {
    let asked = parse(call)?;
    let service = call.service;
    let result = if asked.promote {
        count(&service.counters(call.engine).promotions);
        service.promote(&asked.request)
    } else {
        service.lock(&asked.request)
    };
    if let Err(Refusal::Collision(_)) = result
        && must_wait(call, asked.wait)
    {
        return Ok(Flow::Wait);
    }
    call.session.locks.waits_until = None;
    match result {
        Ok(counts) => {
            count(&service.counters(call.engine).granted);
            call.reply.integer(held(counts, asked.request.scope));
            Ok(Flow::Done)
        }
        Err(refusal) => Err(refused(call, refusal, &asked)),
    }
}

pub fn unlock(call: &mut Call<LockService>) -> Result<Flow, Fault> {
    let asked = parse(call)?;
    if asked.promote {
        return Err(Fault::usage(
            "R asks for a promotion and is not a mode of a lock: unlock O or E",
        ));
    }
    let service = call.service;
    match service.unlock(&asked.request) {
        Ok(counts) => {
            count(&service.counters(call.engine).unlocks);
            call.reply.integer(held(counts, Scope::BOTH));
            Ok(Flow::Done)
        }
        Err(refusal) => Err(refused(call, refusal, &asked)),
    }
}

/// `LOCK` and `UNLOCK` have the same shape.
fn parse<'a>(call: &mut Call<'a, LockService>) -> Result<Asked<'a>, Fault> {
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
            Fault::usage(format!(
                "mode '{}' is not one of S, E, X, O, R",
                shown(letter)
            ))
        })?,
    };
    let (owner, part) = call.session.locks.owner(call.service);
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
                "option '{option}' is not one of SCOPE, WAIT, BACKUP"
            )));
        }
    }
    check_backup(call, &asked.request)?;
    Ok(asked)
}

fn check_backup(call: &Call<LockService>, request: &Request) -> Result<(), Fault> {
    if !request.backup {
        return Ok(());
    }
    if call.service.backup.is_none() {
        let message = "BACKUP: the server keeps no backup file; start it with --backup FILE";
        return Err(Fault::new("NOBACKUP", message));
    }
    if !request.scope.update {
        return Err(Fault::usage(
            "BACKUP keeps the part of the update task, which SCOPE 1 excludes: use SCOPE 2 or 3",
        ));
    }
    Ok(())
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}

fn text<'a>(text: &'a [u8], what: &str) -> Result<&'a [u8], Fault> {
    if text.len() > LENGTH_MAX {
        let length = text.len();
        return Err(Fault::usage(format!(
            "the {what} has {length} bytes; at most {LENGTH_MAX} are allowed"
        )));
    }
    Ok(text)
}

/// How often the parts in `scope` hold the lock.
fn held(counts: Counts, scope: Scope) -> i64 {
    let dialog = if scope.dialog { counts.dialog } else { 0 };
    let update = if scope.update { counts.update } else { 0 };
    i64::from(dialog.max(update))
}

fn must_wait(call: &mut Call<LockService>, wait: Duration) -> bool {
    let now = Instant::now();
    let until = *call.session.locks.waits_until.get_or_insert(now + wait);
    now < until
}

fn refused(call: &Call<LockService>, refusal: Refusal, asked: &Asked) -> Fault {
    let service = call.service;
    let Subject { table, argument } = asked.request.subject;
    let what = || format!("{} {}", shown(table), shown(argument));
    match refusal {
        Refusal::Collision(holder) => {
            count(&service.counters(call.engine).collisions);
            let who = holder.map_or("another owner holds it".to_owned(), |it| by(call, it));
            Fault::new("COLLISION", format!("{}: {who}", what()))
        }
        Refusal::Full => {
            count(&service.counters(call.engine).full);
            service.note_overflow();
            let capacity = service.usage.capacity();
            let remedy = "OVERFLOWS lists the owners of most locks; --capacity raises the limit";
            Fault::new(
                "FULL",
                format!("the table holds {capacity} locks; {remedy}"),
            )
        }
        Refusal::NotHeld => {
            count(&service.counters(call.engine).not_held);
            let mode = if asked.promote {
                Mode::Optimistic
            } else {
                asked.request.mode
            };
            Fault::new("NOTHELD", format!("{}: no {} held", what(), mode.letter()))
        }
    }
}

fn by(call: &Call<LockService>, holder: Holder) -> String {
    let owners = call.service.owners.lock();
    let name = shown(owners.name(holder.owner));
    format!("{} held by {name}", holder.mode.letter())
}

pub fn unlock_all(call: &mut Call<LockService>) -> Result<Flow, Fault> {
    let (own, part) = call.session.locks.owner(call.service);
    let (mut owner, mut scope) = (Some(own), None);
    let mut options = call.arguments.from(1);
    while let Some(option) = options.next() {
        match &option.to_ascii_uppercase()[..] {
            b"DIALOG" => scope = Some(Scope::DIALOG),
            b"UPDATE" => scope = Some(Scope::UPDATE),
            b"BOTH" => scope = Some(Scope::BOTH),
            b"OWNER" => {
                let name = options.next().unwrap_or_default();
                owner = call.service.owners.lock().find(name);
            }
            _ => {
                let option = shown(option);
                let allowed = "DIALOG, UPDATE, BOTH, OWNER";
                return Err(Fault::usage(format!(
                    "option '{option}' is not one of {allowed}"
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

fn release(call: &Call<LockService>, owner: OwnerId, scope: Scope) -> u64 {
    let freed = call.service.release_all(owner, scope);
    let counters = call.service.counters(call.engine);
    counters.unlocks.fetch_add(freed, Relaxed);
    freed
}

pub fn owner(call: &mut Call<LockService>) -> Result<Flow, Fault> {
    let arguments = call.arguments;
    let Some(name) = arguments.get(1) else {
        let (owner, part) = call.session.locks.owner(call.service);
        let name = call.service.owners.lock().name(owner).to_owned();
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
    if call.session.locks.owners() >= OWNERS_MAX {
        return Err(Fault::usage(format!(
            "this connection holds locks of {OWNERS_MAX} owners; UNLOCKALL for some of them first"
        )));
    }
    call.session.locks.act_for(name, part, call.service);
    call.reply.status("OK");
    Ok(Flow::Done)
}

/// The counts of the lock table.
pub fn statistics(call: &mut Call<LockService>) -> Result<Flow, Fault> {
    let figures = call.service.figures();
    call.reply.map(figures.len());
    for (name, value) in figures {
        call.reply.bulk(name.as_bytes());
        call.reply.integer(value as i64);
    }
    Ok(Flow::Done)
}

pub fn overflows(call: &mut Call<LockService>) -> Result<Flow, Fault> {
    let kept: Vec<_> = {
        let overflows = call.service.overflows.lock();
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
            let owners = call.service.owners.lock();
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
