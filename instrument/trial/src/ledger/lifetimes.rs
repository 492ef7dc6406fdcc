//! How long threads lived, by their births and deaths.

use std::collections::HashMap;

use concurve_probe::perf::{Life, LifeEvent};

/// Threads kept; of further ones it is not known.
const KEPT_MAX: usize = 200_000;

/// Last birth and last death of each thread number, in whichever order they were heard of: each
/// CPU tells its own.
#[derive(Debug, Default)]
pub struct Lifetimes {
    born_ns: HashMap<u32, u64>,
    died_ns: HashMap<u32, u64>,
}

impl Lifetimes {
    pub fn born(&mut self, tid: u32, at_ns: u64) {
        keep_later(&mut self.born_ns, tid, at_ns);
    }

    pub fn note(&mut self, life: &Life) {
        match life.event {
            LifeEvent::Birth => keep_later(&mut self.born_ns, life.tid, life.at_ns),
            LifeEvent::Death => keep_later(&mut self.died_ns, life.tid, life.at_ns),
        }
    }

    /// Time from birth to death, if both are known.
    pub fn of(&self, tid: u32) -> Option<u64> {
        let (born_ns, died_ns) = (self.born_ns.get(&tid)?, self.died_ns.get(&tid)?);
        died_ns.checked_sub(*born_ns)
    }
}

fn keep_later(times: &mut HashMap<u32, u64>, tid: u32, at_ns: u64) {
    if times.len() < KEPT_MAX || times.contains_key(&tid) {
        let time = times.entry(tid).or_default();
        *time = at_ns.max(*time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_life_is_from_birth_to_death_in_whichever_order_they_are_told() {
        let life = |at_ns, event| Life {
            at_ns,
            pid: 1,
            tid: 2,
            event,
        };
        let (birth, death) = (life(100, LifeEvent::Birth), life(350, LifeEvent::Death));
        for told in [[birth, death], [death, birth]] {
            let mut lifetimes = Lifetimes::default();
            lifetimes.note(&told[0]);
            assert_eq!(lifetimes.of(2), None);
            lifetimes.note(&told[1]);
            assert_eq!(lifetimes.of(2), Some(250));
            // The number has a new bearer, who lives.
            lifetimes.born(2, 400);
            assert_eq!(lifetimes.of(2), None);
        }
    }
}
