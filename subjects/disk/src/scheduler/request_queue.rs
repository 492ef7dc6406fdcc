//! Waiting requests, both in the order of their sectors and in that of their arrival.

use std::collections::VecDeque;

use crate::request::Request;

/// Identifies a request while it waits in a queue.
pub type Slot = u32;

/// Waiting requests in two orders.
///
/// The queue of a device holds 128 requests of a direction, so a sorted vector is faster than a
/// tree: what moves on an insertion is two kilobytes.
#[derive(Debug, Default)]
pub struct RequestQueue {
    slots: Vec<Request>,
    free: Vec<Slot>,
    by_sector: Vec<(u64, Slot)>,
    by_arrival: VecDeque<Slot>,
}

/// The result of merging a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Merge {
    /// Ticket of the waiting request that it was merged into.
    pub into: u32,
    /// A neighbour that the grown request then touched and that was merged as well.
    pub bridged: Option<Request>,
}

impl RequestQueue {
    pub fn len(&self) -> usize {
        self.by_sector.len()
    }

    pub fn is_empty(&self) -> bool {
        self.by_sector.is_empty()
    }

    pub fn get(&self, slot: Slot) -> &Request {
        &self.slots[slot as usize]
    }

    pub fn add(&mut self, request: Request) {
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = request;
                slot
            }
            None => {
                self.slots.push(request);
                (self.slots.len() - 1) as Slot
            }
        };
        self.insert_sorted(request.sector, slot);
        self.by_arrival.push_back(slot);
    }

    pub fn remove(&mut self, slot: Slot) -> Request {
        let request = self.slots[slot as usize];
        self.remove_sorted(request.sector, slot);
        if self.by_arrival.front() == Some(&slot) {
            self.by_arrival.pop_front();
        } else {
            let at = self.by_arrival.iter().position(|&it| it == slot);
            self.by_arrival
                .remove(at.expect("a waiting request has arrived"));
        }
        self.free.push(slot);
        request
    }

    /// The request that waits longest.
    pub fn oldest(&self) -> Option<Slot> {
        self.by_arrival.front().copied()
    }

    /// The request with the lowest sector.
    pub fn first(&self) -> Option<Slot> {
        self.by_sector.first().map(|it| it.1)
    }

    /// The first request at or after a sector.
    pub fn from(&self, sector: u64) -> Option<Slot> {
        self.by_sector.get(self.rank(sector)).map(|it| it.1)
    }

    /// The last request before a sector.
    pub fn before(&self, sector: u64) -> Option<Slot> {
        let rank = self.rank(sector);
        rank.checked_sub(1).map(|it| self.by_sector[it].1)
    }

    /// Merges a request into a waiting one that it touches, at its end or (`front`) its beginning;
    /// `None` if it touches none, or if that would grow beyond `limit` sectors.
    pub fn merge(&mut self, request: &Request, limit: u32, front: bool) -> Option<Merge> {
        let rank = self.rank(request.sector);
        let mut before = self.by_sector[..rank].iter().rev();
        // Requests for the same sector may overlap, so two neighbours are checked.
        if let Some(slot) = before
            .by_ref()
            .take(2)
            .map(|it| it.1)
            .find(|&slot| self.get(slot).end() == request.sector)
        {
            return self.grow_back(slot, request, limit);
        }
        if !front {
            return None;
        }
        let slot = self.from(request.end())?;
        let waiting = self.get(slot);
        if waiting.sector != request.end() || !waiting.may_join(request, limit) {
            return None;
        }
        Some(self.grow_front(slot, request))
    }

    fn grow_back(&mut self, slot: Slot, request: &Request, limit: u32) -> Option<Merge> {
        if !self.get(slot).may_join(request, limit) {
            return None;
        }
        self.slots[slot as usize].sectors += request.sectors;
        let grown = *self.get(slot);
        Some(Merge {
            into: grown.ticket,
            bridged: self.bridge(slot, &grown, limit),
        })
    }

    fn grow_front(&mut self, slot: Slot, request: &Request) -> Merge {
        let old_sector = self.get(slot).sector;
        self.remove_sorted(old_sector, slot);
        let waiting = &mut self.slots[slot as usize];
        waiting.sector = request.sector;
        waiting.sectors += request.sectors;
        let into = waiting.ticket;
        self.insert_sorted(request.sector, slot);
        Merge {
            into,
            bridged: None,
        }
    }

    /// After growing at its end, a request may touch the next one, and is merged with it. It gets
    /// the place of the older one in the order of arrival.
    fn bridge(&mut self, slot: Slot, grown: &Request, limit: u32) -> Option<Request> {
        let next = self.from(grown.end())?;
        let neighbour = *self.get(next);
        if next == slot || neighbour.sector != grown.end() || !grown.may_join(&neighbour, limit) {
            return None;
        }
        if neighbour.arrived < grown.arrived {
            self.swap_arrival(slot, next);
            self.slots[slot as usize].arrived = neighbour.arrived;
        }
        self.remove(next);
        self.slots[slot as usize].sectors += neighbour.sectors;
        Some(neighbour)
    }

    fn swap_arrival(&mut self, one: Slot, other: Slot) {
        let place = |requests: &Self, slot| requests.by_arrival.iter().position(|&it| it == slot);
        if let (Some(a), Some(b)) = (place(self, one), place(self, other)) {
            self.by_arrival.swap(a, b);
        }
    }

    fn rank(&self, sector: u64) -> usize {
        self.by_sector.partition_point(|&(at, _)| at < sector)
    }

    fn insert_sorted(&mut self, sector: u64, slot: Slot) {
        let at = self.by_sector.partition_point(|&it| it < (sector, slot));
        self.by_sector.insert(at, (sector, slot));
    }

    fn remove_sorted(&mut self, sector: u64, slot: Slot) {
        let at = self.by_sector.binary_search(&(sector, slot));
        self.by_sector
            .remove(at.expect("a waiting request is in the order of sectors"));
    }
}

/// A one-way elevator that may also go back a short way: how far, in sectors, and what a sector
/// back costs in sectors forward.
#[derive(Debug, Clone, Copy)]
pub struct Elevator {
    pub back_max: u64,
    pub back_penalty: u64,
}

impl Elevator {
    /// What it costs to go from the head to a sector; whatever the sweep must start again for costs
    /// more than all else.
    pub fn cost(self, sector: u64, head: u64) -> (bool, u64) {
        if sector >= head {
            (false, sector - head)
        } else if head - sector <= self.back_max {
            (false, (head - sector) * self.back_penalty)
        } else {
            (true, sector)
        }
    }

    /// The waiting request that is nearest to the head: forward, or a short way back at a higher
    /// price; if there is none, the sweep starts again at the lowest sector.
    pub fn nearest(self, requests: &RequestQueue, head: u64) -> Option<Slot> {
        let ahead = requests.from(head);
        let behind = requests
            .before(head)
            .filter(|&slot| head - requests.get(slot).sector <= self.back_max);
        match (ahead, behind) {
            (Some(ahead), Some(behind)) => {
                let forward = requests.get(ahead).sector - head;
                let back = (head - requests.get(behind).sector) * self.back_penalty;
                Some(if back < forward { behind } else { ahead })
            }
            (found, None) | (None, found) => found.or_else(|| requests.first()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{Direction, Priority};

    fn write(sector: u64, sectors: u32, ticket: u32) -> Request {
        Request {
            sector,
            sectors,
            direction: Direction::Write,
            sync: false,
            process: 0,
            priority: Priority::NORMAL,
            arrived: u64::from(ticket),
            ticket,
        }
    }

    fn queue(requests: &[Request]) -> RequestQueue {
        let mut queue = RequestQueue::default();
        requests.iter().for_each(|it| queue.add(*it));
        queue
    }

    #[test]
    fn requests_come_in_either_order() {
        let queue = queue(&[write(90, 8, 1), write(10, 8, 2), write(50, 8, 3)]);
        let ticket = |slot: Option<Slot>| slot.map(|it| queue.get(it).ticket);
        assert_eq!(ticket(queue.oldest()), Some(1));
        assert_eq!(ticket(queue.first()), Some(2));
        assert_eq!(ticket(queue.from(11)), Some(3));
        assert_eq!(ticket(queue.from(50)), Some(3));
        assert_eq!(ticket(queue.before(50)), Some(2));
        assert_eq!(ticket(queue.from(91)), None);
        assert_eq!(ticket(queue.before(10)), None);
    }

    #[test]
    fn a_neighbour_is_taken_in_at_either_end() {
        let mut queue = queue(&[write(100, 8, 1)]);
        let merged = |into| {
            Some(Merge {
                into,
                bridged: None,
            })
        };
        assert_eq!(queue.merge(&write(108, 8, 2), 64, true), merged(1));
        assert_eq!(queue.merge(&write(92, 8, 3), 64, false), None);
        assert_eq!(queue.merge(&write(92, 8, 3), 64, true), merged(1));
        let slot = queue.first().unwrap();
        assert_eq!((queue.get(slot).sector, queue.get(slot).sectors), (92, 24));
        assert_eq!(queue.merge(&write(116, 48, 4), 64, true), None, "too long");
    }

    #[test]
    fn a_gap_that_closes_makes_one_of_three_and_keeps_the_older_place() {
        let mut queue = queue(&[write(500, 8, 0), write(108, 8, 1), write(92, 8, 2)]);
        let merge = queue.merge(&write(100, 8, 3), 64, true).unwrap();
        assert_eq!(
            (merge.into, merge.bridged.map(|it| it.ticket)),
            (2, Some(1))
        );
        assert_eq!(queue.len(), 2);
        let oldest = queue.oldest().unwrap();
        queue.remove(oldest);
        let left = *queue.get(queue.oldest().unwrap());
        assert_eq!((left.sector, left.sectors, left.arrived), (92, 24, 1));
    }
}
