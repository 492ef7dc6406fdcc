//! What the lock table has counted, and when it was full.

use crate::commands::{Call, Fault, Flow, server};

pub fn statistics(call: &mut Call) -> Result<Flow, Fault> {
    let figures = server::lock_figures(call.hall);
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
