//! The lock service's commands.

mod figures;
mod list;
mod owners;

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

pub use figures::{overflows, statistics};
pub use list::list;
pub use owners::{owner, unlock_all};

use super::{Call, Fault, Flow, number, shown};
use crate::hall::{Notes, count};
use crate::locks::argument::LENGTH_MAX;
use crate::locks::mode::{Mode, Scope};
use crate::locks::overflow::picture;
use crate::locks::owners::Part;
use crate::locks::request::{Counts, Holder, Refusal, Request, Subject};

/// Longest wait for a lock.
const WAIT_MS_MAX: u64 = 60_000;

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
