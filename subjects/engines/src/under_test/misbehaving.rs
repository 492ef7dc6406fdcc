//! Services that do one thing wrong.

use std::path::PathBuf;
use std::time::Duration;

use concurve_engines::{Engine, Event, Service, Start};
use concurve_latch::{Class, Mutex};
use nix::sys::signal::{Signal, raise};

pub struct Misbehaving {
    fault: String,
    folder: PathBuf,
}

pub struct Shared {
    latch: Mutex<()>,
    starts: Mutex<u32>,
    generation: u32,
}

impl Misbehaving {
    pub fn new(fault: &str, folder: PathBuf) -> Self {
        Self {
            fault: fault.to_owned(),
            folder,
        }
    }
}

impl Service for Misbehaving {
    type Shared = Shared;

    fn open(&self, start: Start) -> Result<Shared, String> {
        match self.fault.as_str() {
            "unopened" => return Err("there is no such folder: name another one".to_owned()),
            "thread-in-open" => drop(std::thread::spawn(wait_for_ever)),
            "panics-in-open" => panic!("as it was asked to"),
            _ => {}
        }
        Ok(Shared {
            latch: Class::named("the latch").mutex(()),
            starts: Mutex::new(0),
            generation: start.generation,
        })
    }

    fn run(&self, shared: &Shared, engine: &Engine) -> Result<(), String> {
        *shared.starts.lock() += 1;
        if engine.number > 1 {
            return wait_for_stop(engine);
        }
        match self.fault.as_str() {
            "fails" => return Err("the disk is full: make room".to_owned()),
            "panics" if shared.generation == 1 => panic!("as it was asked to"),
            // Nobody joins it, and it holds nothing.
            "thread-panics" if shared.generation == 1 => {
                let thread = std::thread::Builder::new().name("helper".to_owned());
                let panics = || panic!("as it was asked to");
                drop(thread.spawn(panics).map_err(|it| it.to_string())?);
                wait_for_ever();
            }
            "dies-free" if engine.predecessors == 0 => die(),
            "dies-holding" if shared.generation == 1 => {
                let _held = shared.latch.lock();
                die();
            }
            "keeps-dying-free" => die(),
            "keeps-dying" => {
                let _held = shared.latch.lock();
                die();
            }
            "ignores-stop" => wait_for_ever(),
            "exhausts" if shared.generation == 1 => {
                let mut all = Vec::new();
                loop {
                    all.push(vec![1_u8; 100_000]);
                }
            }
            _ => {}
        }
        // Tells the test that the engine got here.
        std::fs::write(self.folder.join("survived"), b"").map_err(|it| it.to_string())?;
        wait_for_stop(engine)
    }

    fn close(&self, shared: Shared) -> Result<(), String> {
        eprintln!("closed {} starts", shared.starts.into_inner());
        Ok(())
    }

    fn on_event(&self, event: &Event) {
        crate::events::print(event);
    }
}

fn die() {
    let _ = raise(Signal::SIGKILL);
}

fn wait_for_ever() {
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

fn wait_for_stop(engine: &Engine) -> Result<(), String> {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    let mut descriptors = [PollFd::new(engine.stop_descriptor(), PollFlags::POLLIN)];
    let polled = poll(&mut descriptors, PollTimeout::NONE);
    polled.map(|_| ()).map_err(|it| it.to_string())
}
