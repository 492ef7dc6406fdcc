//! Clients that work until their storage fails, and the checks after the next start.

use std::collections::BTreeMap;

use concurve_records::{Durability, Engine, EngineOptions, Latching, Status};

use crate::common::{Teller, audit, options};

/// The number of acknowledged transactions of each client.
pub type Acknowledged = BTreeMap<u32, u32>;

/// Small, so that pages are evicted, and there are many checkpoints.
pub fn small(latching: Latching, durability: Durability) -> EngineOptions {
    EngineOptions {
        cache_pages: 64,
        checkpoint_bytes: 40_000,
        ..options(latching, durability)
    }
}

/// A client works until the storage fails; the number of its next transaction.
pub fn work_until_failure(engine: &Engine, client: u32, next: u32, expected: Status) -> u32 {
    let Ok(mut teller) = Teller::new(engine, client) else {
        return next;
    };
    teller.next = next;
    loop {
        let before = teller.next;
        if let Err(status) = teller.transact() {
            assert_eq!(status, expected);
            return before;
        }
    }
}

/// Checks that acknowledged transactions survive; returns each client's next number.
pub fn check(
    engine: &Engine,
    acknowledged: &Acknowledged,
    is_durable: bool,
    case: &str,
) -> Acknowledged {
    let found: BTreeMap<u32, Vec<u32>> = audit(engine).into_iter().collect();
    let mut next = Acknowledged::new();
    for (client, acknowledged) in acknowledged {
        let numbers = found.get(client).cloned().unwrap_or_default();
        let count = numbers.len() as u32;
        assert_eq!(numbers, (0..count).collect::<Vec<_>>(), "{case}");
        let lost = is_durable && count < *acknowledged;
        assert!(
            !lost,
            "{case}: client {client}: {acknowledged} acknowledged, found {count}"
        );
        assert!(
            count <= acknowledged + 1,
            "{case}: {count} of {acknowledged}"
        );
        next.insert(*client, count);
    }
    next
}
