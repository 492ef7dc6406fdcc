//! Whose locks a connection takes, and all of an owner's given back.

use std::sync::atomic::Ordering::Relaxed;

use super::text;
use crate::commands::{Call, Fault, Flow, shown};
use crate::hall::Notes;
use crate::locks::entry::OwnerId;
use crate::locks::mode::Scope;
use crate::locks::owners::Part;

/// Owners that one connection may speak for at once.
const OWNERS_MAX: usize = 1024;

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

pub fn find_owner(call: &Call, name: &[u8]) -> Option<OwnerId> {
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
