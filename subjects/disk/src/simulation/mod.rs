//! A discrete-event simulation of processes and devices.
//!
//! Everything follows from the processes and their seeds: two runs of the same simulation are equal
//! to the nanosecond.

mod event_queue;
mod in_flight;

use crate::account::Account;
use crate::device::{Device, Effect};
use crate::disk::Disk;
use crate::error::Error;
use crate::event_file::EventFile;
use crate::machine::{Machine, Volume};
use crate::request::{Io, ProcessId, Request};
use crate::time::Time;
use crate::workload::{Actions, Process, Step};
use event_queue::{Event, EventQueue};
use in_flight::{Pending, PendingIos, Pieces};

/// The state of a process.
struct SimulatedProcess {
    process: Box<dyn Process>,
    /// Its I/Os that are not done.
    under_way: usize,
    /// It resumes when fewer than this are under way.
    waits_below: Option<usize>,
    parked: bool,
    /// How often it has resumed.
    wait_number: u32,
    /// Another process has woken it while it was not parked.
    wake_pending: bool,
    ended: bool,
}

impl SimulatedProcess {
    fn new(process: Box<dyn Process>) -> Self {
        Self {
            process,
            under_way: 0,
            waits_below: None,
            parked: false,
            wait_number: 0,
            wake_pending: false,
            ended: false,
        }
    }
}

/// A machine with its processes at one simulated time.
pub struct Simulation {
    now: Time,
    events: EventQueue,
    volume: Volume,
    devices: Vec<Device>,
    processes: Vec<SimulatedProcess>,
    pending: PendingIos,
    pieces: Pieces,
    finishing: Vec<Option<Request>>,
    effects: Vec<Effect>,
    actions: Actions,
    /// Gets what the disks do, if somebody wants to know.
    told: Option<EventFile>,
    pub account: Account,
}

impl Simulation {
    pub fn new(machine: &Machine, processes: Vec<Box<dyn Process>>) -> Self {
        let device = || {
            Device::new(
                Disk::new(machine.disk.clone()),
                machine.scheduler.build_with(machine.tuned),
            )
        };
        let devices: Vec<Device> = (0..machine.disks).map(|_| device()).collect();
        let processes: Vec<SimulatedProcess> =
            processes.into_iter().map(SimulatedProcess::new).collect();
        Self {
            now: 0,
            events: EventQueue::default(),
            volume: machine.volume(),
            devices,
            account: Account::new(processes.len()),
            processes,
            pending: PendingIos::default(),
            pieces: Pieces::default(),
            finishing: Vec::new(),
            effects: Vec::new(),
            actions: Actions::default(),
            told: None,
        }
    }

    /// Number of cylinders of each disk.
    pub fn cylinders(&self) -> u32 {
        self.devices
            .first()
            .map_or(0, |device| device.disk.cylinders())
    }

    /// Runs until all processes have ended and all that they wrote is on the disks.
    pub fn run(mut self) -> Account {
        self.run_all();
        self.closed_account()
    }

    /// The same, and tells what the disks do.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn run_told(mut self, told: EventFile) -> Result<Account, Error> {
        self.told = Some(told);
        self.run_all();
        let told = self.told.take().expect("it was given");
        told.end(self.account.end)?;
        Ok(self.closed_account())
    }

    fn run_all(&mut self) {
        for process in 0..self.processes.len() {
            self.resume(process);
        }
        while let Some((time, event)) = self.events.pop() {
            self.now = time;
            match event {
                Event::ArmDone { device } => self.arm_done(device),
                Event::Done { device, place } => self.done_without_arm(device, place),
                Event::Query { device } => self.run_device(device),
                Event::Wake {
                    process,
                    wait_number,
                } if wait_number == self.processes[process].wait_number => {
                    self.resume(process);
                }
                Event::Wake { .. } => {}
            }
        }
    }

    fn closed_account(mut self) -> Account {
        debug_assert!(self.processes.iter().all(|it| it.ended), "all have ended");
        for device in &self.devices {
            self.account.merged += device.merged;
            self.account.sent += device.sent;
            self.account.busy += device.disk.busy;
            self.account.idled += device.idled;
        }
        self.account
    }

    // -- processes ----------------------------------------------------------------------------

    fn resume(&mut self, process: usize) {
        let state = &mut self.processes[process];
        state.wait_number += 1;
        state.parked = false;
        let mut actions = std::mem::take(&mut self.actions);
        let mut touched = 0u64;
        loop {
            let state = &mut self.processes[process];
            let step = state.process.step(self.now, &mut actions);
            for io in actions.ios.drain(..) {
                touched |= self.submit(process, io);
            }
            actions.wake.drain(..).for_each(|it| self.wake(it));
            if !self.continues(process, step) {
                break;
            }
        }
        self.actions = actions;
        // The queue is plugged: it is run when the process has submitted all of this step.
        for device in (0..self.devices.len()).filter(|it| touched & (1 << it) != 0) {
            self.run_device(device);
        }
    }

    fn continues(&mut self, process: usize, step: Step) -> bool {
        let state = &mut self.processes[process];
        match step {
            Step::Wait { below } if state.under_way < below => return true,
            Step::Wait { below } => state.waits_below = Some(below),
            Step::Park | Step::ParkFor(_) if std::mem::take(&mut state.wake_pending) => {
                return true;
            }
            Step::Park => state.parked = true,
            Step::ParkFor(time) => {
                state.parked = true;
                self.wake_at(self.now + time, process);
            }
            Step::Sleep(time) => self.wake_at(self.now + time, process),
            Step::End => self.end(process),
        }
        false
    }

    /// Wakes a parked process, or remembers to.
    fn wake(&mut self, process: usize) {
        let state = &mut self.processes[process];
        if std::mem::take(&mut state.parked) {
            self.wake_at(self.now, process);
        } else {
            state.wake_pending = true;
        }
    }

    fn end(&mut self, process: usize) {
        self.processes[process].ended = true;
        self.account.process_ended(process, self.now);
        self.account.end = self.now;
    }

    /// Returns the devices that the I/O went to, a bit each.
    fn submit(&mut self, process: usize, io: Io) -> u64 {
        let id = self.pending.add(Pending::new(process, io, self.now));
        self.processes[process].under_way += 1;
        let mut touched = 0;
        for piece in self.volume.pieces(io.sector, io.sectors) {
            self.pending.add_piece(id);
            let request = Request {
                sector: piece.sector,
                sectors: piece.sectors,
                direction: io.direction,
                sync: io.sync,
                process: process as ProcessId,
                priority: self.processes[process].process.priority(),
                arrived: self.now,
                ticket: self.pieces.add(id),
            };
            touched |= 1 << piece.disk;
            if let Some(told) = &mut self.told {
                let cylinder = self.devices[piece.disk].disk.cylinder_of(request.sector);
                told.arrived(self.now, piece.disk, &request, cylinder);
            }
            self.devices[piece.disk].submit(request, self.now, &mut self.effects);
            self.apply_effects(piece.disk);
        }
        touched
    }

    // -- devices ------------------------------------------------------------------------------

    fn run_device(&mut self, device: usize) {
        self.devices[device].run(self.now, &mut self.effects);
        self.apply_effects(device);
    }

    fn apply_effects(&mut self, device: usize) {
        let mut effects = std::mem::take(&mut self.effects);
        for effect in effects.drain(..) {
            match effect {
                Effect::Merged { into, gone } => {
                    self.pieces.join(into, gone);
                    if let Some(told) = &mut self.told {
                        told.merged(self.now, device, gone, into);
                    }
                }
                Effect::ArmDone(time) => {
                    self.events.schedule(time, Event::ArmDone { device });
                    if let Some(told) = &mut self.told
                        && let Some(serving) = self.devices[device].disk.serving()
                    {
                        told.served(self.now, device, &serving, time);
                    }
                }
                Effect::QueryAt(time) => self.events.schedule(time, Event::Query { device }),
                Effect::Done(time, request) => {
                    if let Some(told) = &mut self.told {
                        told.cached(self.now, device, &request);
                    }
                    self.finishing.push(Some(request));
                    let place = self.finishing.len() - 1;
                    self.events.schedule(time, Event::Done { device, place });
                }
            }
        }
        self.effects = effects;
    }

    fn arm_done(&mut self, device: usize) {
        self.account.end = self.now;
        if let Some(request) = self.devices[device].disk.finish() {
            self.complete(device, &request);
        }
        self.run_device(device);
    }

    fn done_without_arm(&mut self, device: usize, place: usize) {
        let request = self.finishing[place].take().expect("it is done once");
        if self.finishing.iter().all(Option::is_none) {
            self.finishing.clear();
        }
        self.complete(device, &request);
        self.run_device(device);
    }

    /// A request is done, and with it the pieces that were merged into it. Processes that can go
    /// on do so after the scheduler was called: the interrupt handler starts the next request before
    /// any process wakes up. So a process that reads one block after the other has no request waiting
    /// then, which is why anticipation helps.
    fn complete(&mut self, device: usize, request: &Request) {
        self.devices[device].completed(request, self.now);
        let mut piece = Some(request.ticket);
        while let Some(ticket) = piece {
            let (id, next) = self.pieces.remove(ticket);
            piece = next;
            self.piece_done(id);
        }
    }

    fn piece_done(&mut self, id: u32) {
        let Some(done) = self.pending.piece_done(id) else {
            return;
        };
        let process = done.process;
        self.account
            .io_done(process, &done.io, self.now - done.begun);
        let state = &mut self.processes[process];
        state.under_way -= 1;
        if state.waits_below.is_some_and(|it| state.under_way < it) {
            state.waits_below = None;
            self.wake_at(self.now, process);
        }
    }

    fn wake_at(&mut self, time: Time, process: usize) {
        let wait_number = self.processes[process].wait_number;
        self.events.schedule(
            time,
            Event::Wake {
                process,
                wait_number,
            },
        );
    }
}
