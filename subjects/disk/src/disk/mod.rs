//! A model of a rotating disk: a request's service time depends on the positions of the arm and the
//! platters.

mod buffers;
pub mod geometry;
pub mod seek;

use crate::request::{Direction, Request};
use crate::time::{MICROSECOND, Time, milliseconds};
use buffers::{ReadAhead, WriteCache};
use geometry::{Geometry, Place, Shape, Zone};
use seek::SeekCurve;

/// The parameters of a disk, known or assumed.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    pub shape: Shape,
    pub seek: SeekCurve,
    /// From a command's arrival until the arm moves.
    pub overhead: Time,
    /// A sector between the disk's memory and the host.
    pub bus_sector: Time,
    /// Sectors that the disk reads on into its memory behind a read; 0: none.
    pub read_ahead: u64,
    /// Sectors of writes that it holds in memory and reports as done; 0: none.
    pub write_cache: u64,
    /// Commands that it takes at a time. With several it chooses the one that it reaches first.
    pub queue_depth: usize,
}

impl Model {
    /// A SCSI disk of 36 GB with 15,000 revolutions a minute, as document 003 had three.
    ///
    /// The document names no model. Products of the time: an average seek of 3.0 to 4.1 ms, up to
    /// 98 MB/s (so at most 392 KB a track); the settling time, the zones and the overhead are
    /// assumed.
    pub fn scsi_36gb_15k() -> Self {
        let heads = 4;
        // 784 sectors a track outside (98 MB/s) down to 560 inside, in eight zones.
        let zones = (0..8)
            .map(|zone| Zone {
                cylinders: 3_285,
                sectors_per_track: 784 - zone * 32,
            })
            .collect();
        Self {
            shape: Shape {
                zones,
                heads,
                revolution: milliseconds(4.0),
                head_skew: milliseconds(0.3),
                cylinder_skew: milliseconds(0.5),
            },
            seek: SeekCurve::with_average(seek::Shape::Root, 0.3, 3.5),
            overhead: 100 * MICROSECOND,
            // Ultra320: 320 MB/s.
            bus_sector: 1_600,
            read_ahead: 1024,
            write_cache: 0,
            queue_depth: 1,
        }
    }
}

/// A disk and its state.
#[derive(Debug)]
pub struct Disk {
    model: Model,
    geometry: Geometry,
    commands: Vec<Command>,
    cache: WriteCache,
    at_work: Option<Work>,
    /// Where the arm is, and where it was before what it does now.
    cylinder: u32,
    came_from: u32,
    head: u32,
    read_ahead: Option<ReadAhead>,
    /// Total time busy.
    pub busy: Time,
}

/// A command that waits for the arm.
#[derive(Debug, Clone, Copy)]
struct Command {
    request: Request,
    /// When the command is decoded; that overlaps with the commands before it.
    ready: Time,
}

#[derive(Debug, Clone, Copy)]
enum Work {
    Command(Command),
    /// Writing a request from the write cache, which was reported as done already.
    Destaging(Command),
}

/// What the arm does now: a request, and the cylinders from which and to which it goes.
/// `is_reported`: the request was reported as done before, and is written out of the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Serving {
    pub request: Request,
    pub from: u32,
    pub to: u32,
    pub is_reported: bool,
}

/// The result of accepting a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepted {
    /// It waits for the arm.
    Queued,
    /// It went into the cache and is reported as done at this time.
    Cached(Time),
}

impl Disk {
    pub fn new(model: Model) -> Self {
        Self {
            geometry: Geometry::new(model.shape.clone()),
            cache: WriteCache::new(model.write_cache),
            commands: Vec::new(),
            at_work: None,
            cylinder: 0,
            came_from: 0,
            head: 0,
            read_ahead: None,
            busy: 0,
            model,
        }
    }

    pub fn sectors(&self) -> u64 {
        self.geometry.sectors()
    }

    pub fn queue_depth(&self) -> usize {
        self.model.queue_depth
    }

    /// A command arrives.
    pub fn accept(&mut self, request: Request, now: Time) -> Accepted {
        if request.direction == Direction::Write && self.cache.take_in(&request) {
            self.read_ahead = None;
            return Accepted::Cached(now + self.model.overhead + self.on_bus(&request));
        }
        let ready = now + self.model.overhead;
        self.commands.push(Command { request, ready });
        Accepted::Queued
    }

    /// Starts the next work if the arm is free; returns the time when it will be done.
    pub fn start(&mut self, now: Time) -> Option<Time> {
        if self.at_work.is_some() {
            return None;
        }
        let work = self.next_work(now)?;
        let (Work::Command(command) | Work::Destaging(command)) = work;
        self.at_work = Some(work);
        let end = self.serve(&command, now);
        self.busy += end - now;
        Some(end)
    }

    /// What the arm does now, if anything.
    pub fn serving(&self) -> Option<Serving> {
        let (command, is_reported) = match self.at_work? {
            Work::Command(command) => (command, false),
            Work::Destaging(command) => (command, true),
        };
        Some(Serving {
            request: command.request,
            from: self.came_from,
            to: self.cylinder,
            is_reported,
        })
    }

    /// Number of its cylinders.
    pub fn cylinders(&self) -> u32 {
        self.geometry.cylinders()
    }

    /// The cylinder of a sector.
    pub fn cylinder_of(&self, sector: u64) -> u32 {
        self.geometry.place(sector).cylinder
    }

    /// Ends the current work: the request that is done; `None` if it was reported as done before.
    pub fn finish(&mut self) -> Option<Request> {
        match self.at_work.take().expect("something was begun") {
            Work::Command(command) => Some(command.request),
            Work::Destaging(_) => None,
        }
    }

    /// Commands first; the cache is written out when there are none, or when it is nearly full.
    fn next_work(&mut self, now: Time) -> Option<Work> {
        if (self.commands.is_empty() || self.cache.is_pressing())
            && let Some(request) = self.cache.next_to_write()
        {
            return Some(Work::Destaging(Command {
                request,
                ready: now,
            }));
        }
        let index = self.soonest(now)?;
        Some(Work::Command(self.commands.swap_remove(index)))
    }

    /// The command that the head would reach first (shortest positioning time first).
    fn soonest(&self, now: Time) -> Option<usize> {
        if self.commands.len() < 2 {
            return (!self.commands.is_empty()).then_some(0);
        }
        (0..self.commands.len()).min_by_key(|&it| self.reached(&self.commands[it], now))
    }

    /// When the head would be at the beginning of a request.
    fn reached(&self, command: &Command, now: Time) -> Time {
        let sector = command.request.sector;
        let begin = command.ready.max(now);
        match self.read_ahead_for(&command.request) {
            Some(ahead) => ahead.reaches(&self.geometry, sector).max(begin),
            None => self.positioned(&self.geometry.place(sector), begin),
        }
    }

    /// When the arm is there and the sector comes round, if it may move from `begin` on.
    fn positioned(&self, place: &Place, begin: Time) -> Time {
        let way = place.cylinder.abs_diff(self.cylinder);
        let moving = match way {
            0 if place.head == self.head => 0,
            0 => self.geometry.head_skew(),
            _ => self.model.seek.time(way, self.geometry.cylinders()),
        };
        let there = begin + moving;
        let revolution = self.geometry.revolution();
        there + (place.angle + revolution - there % revolution) % revolution
    }

    /// When a request that starts now will be done.
    fn serve(&mut self, command: &Command, now: Time) -> Time {
        let request = &command.request;
        let begin = command.ready.max(now);
        self.came_from = self.cylinder;
        if let Some(ahead) = self.read_ahead_for(request) {
            let read = ahead.reaches(&self.geometry, request.end());
            if let Some(ahead) = &mut self.read_ahead {
                ahead.extend(request, now, self.model.read_ahead, &self.geometry);
            }
            return read.max(begin + self.on_bus(request));
        }
        let place = self.geometry.place(request.sector);
        let begin = self.positioned(&place, begin);
        let end = begin + self.geometry.transfer(&place, u64::from(request.sectors));
        let last = self.geometry.place(request.end() - 1);
        (self.cylinder, self.head) = (last.cylinder, last.head);
        self.read_ahead = match request.direction {
            Direction::Read if self.model.read_ahead > 0 => Some(ReadAhead::behind(
                request,
                end,
                self.model.read_ahead,
                self.geometry.sectors(),
            )),
            _ => None,
        };
        end
    }

    fn read_ahead_for(&self, request: &Request) -> Option<&ReadAhead> {
        let ahead = self.read_ahead.as_ref()?;
        (request.direction == Direction::Read && ahead.holds(request)).then_some(ahead)
    }

    fn on_bus(&self, request: &Request) -> Time {
        u64::from(request.sectors) * self.model.bus_sector
    }
}
