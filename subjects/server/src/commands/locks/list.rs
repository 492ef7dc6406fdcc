//! Lists of locks, a page at a time.

use crate::commands::call::{Call, Fault, number, shown};
use crate::lock_table::argument::overlap;
use crate::lock_table::entry::OwnerId;
use crate::lock_table::mode::Mode;
use crate::lock_table::request::{Counts, Listed};
use crate::locks::service::LockService;
use crate::request::Flow;

/// Maximum number of locks on a page.
const PAGE_MAX: u64 = 1000;
/// Maximum number of places that are examined for a page, even if few of them match the filter.
const LOOKED_AT_MAX: usize = 100_000;

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
    mode.ok_or_else(|| Fault::usage(format!("mode '{}' is not one of S, E, X, O", shown(letter))))
}

pub fn list(call: &mut Call<LockService>) -> Result<Flow, Fault> {
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
                    "option '{option}' is not one of {allowed}"
                )));
            }
        }
    }
    let owner = filter
        .owner
        .map(|name| call.service.owners.lock().find(name));
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

/// Calls `take` with the locks from a cursor on, until it accepted `page` of them or enough places
/// were examined. Returns the next cursor (the numbers of a partition and of a place in it), 0 at
/// the end.
fn walk(
    call: &Call<LockService>,
    cursor: u64,
    page: usize,
    take: &mut dyn FnMut(Listed) -> bool,
) -> u64 {
    let (first_partition, first_place) = ((cursor >> 32) as usize, cursor as u32);
    let (mut taken, mut looked_at, mut partition_number, mut next) = (0, 0, 0, 0);
    call.service.table.each_partition(|partition| {
        let number = partition_number;
        partition_number += 1;
        if number < first_partition || next != 0 {
            return;
        }
        let start = if number == first_partition {
            first_place
        } else {
            0
        };
        for place in start..partition.places() as u32 {
            if taken == page || looked_at == LOOKED_AT_MAX {
                next = (number as u64) << 32 | u64::from(place);
                return;
            }
            looked_at += 1;
            taken += usize::from(partition.listed(place).is_some_and(&mut *take));
        }
    });
    next
}

/// A lock, copied while its partition was latched.
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

    fn write(&self, call: &mut Call<LockService>) {
        let owner = {
            let owners = call.service.owners.lock();
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
