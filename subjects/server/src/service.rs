//! What the engines of the server run: each of them by its dials.

use std::net::TcpListener;
use std::thread::{Builder, ScopedJoinHandle};

use concurve_engines::{Engine, Event, Service, Start};
use concurve_reporter::Reporter;

use crate::error::{Error, While};
use crate::hall::Hall;
use crate::net::io_thread::{Door, IoThread};
use crate::net::run_queue::RunQueue;
use crate::net::until::Until;
use crate::net::{disk, executor, listener};
use crate::report;
use crate::settings::{Engines, Settings};

/// The server, as it was started.
#[derive(Debug)]
pub struct Server {
    pub settings: Settings,
    pub listener: TcpListener,
    pub port: u16,
    pub reporter: Reporter,
}

impl Service for Server {
    type Shared = Hall;

    fn open(&self, start: Start) -> Result<Hall, String> {
        let hall = Hall::new(self.settings.clone(), self.port, start).map_err(text)?;
        report::facts(&self.reporter, &hall).map_err(text)?;
        Ok(hall)
    }

    fn run(&self, hall: &Hall, engine: &Engine) -> Result<(), String> {
        if engine.predecessors > 0 {
            hall.end_sessions_of(engine.number as usize - 1);
        }
        self.serve(hall, engine).map_err(text)
    }

    fn close(&self, hall: Hall) -> Result<(), String> {
        report::end(&self.reporter, &hall).map_err(text)?;
        hall.end().map_err(text)
    }

    fn on_event(&self, event: &Event) {
        match event {
            Event::Ready { generation: 1 } => {
                if let Err(error) = report::ready(&self.reporter, &self.settings, self.port) {
                    eprintln!("concurve-server: {error}");
                }
            }
            Event::Ready { generation } => {
                eprintln!("concurve-server: started anew, generation {generation}");
            }
            Event::Replaced { engine, why } => {
                eprintln!("concurve-server: {why}; there is a new engine {engine}");
            }
            Event::Lost { why } => eprintln!("concurve-server: {why}; all engines are ended"),
        }
    }
}

fn text(error: impl Into<Error>) -> String {
    error.into().to_string()
}

impl Server {
    fn serve(&self, hall: &Hall, engine: &Engine) -> Result<(), Error> {
        let number = engine.number as usize - 1;
        let until = Until::stopped(engine);
        let is_first = number == 0;
        let _checkpointer = is_first.then(|| hall.start_checkpointer()).transpose()?;
        match (&hall.run_queue, self.settings.engines) {
            (Some(queue), _) => self.execute(hall, queue, number, &until),
            (None, Engines::Threads) => self.serve_sockets(hall, number, &until),
            (None, Engines::Processes) => self.be_process(hall, number, &until),
        }
    }

    /// Executes; the first engine also starts the threads for the network and the disk.
    fn execute(
        &self,
        hall: &Hall,
        queue: &RunQueue,
        number: usize,
        until: &Until,
    ) -> Result<(), Error> {
        if number > 0 {
            return executor::run(hall, queue, number, until);
        }
        let io_threads = (0..hall.inboxes.len()).map(|io_thread| Work {
            name: format!("io-{}", io_thread + 1),
            run: Box::new(move || IoThread::new(hall, io_thread)?.run(until)),
        });
        let disk = hall.disk_queue.as_ref().map(|queue| Work {
            name: "disk".to_owned(),
            run: Box::new(move || disk::run(hall, queue, until)),
        });
        let listener = self.listening(hall, until);
        let threads = io_threads.chain(disk).chain([listener]).collect();
        beside(threads, until, || executor::run(hall, queue, number, until))
    }

    /// Is an I/O thread that executes; the first one also starts the listener.
    fn serve_sockets(&self, hall: &Hall, number: usize, until: &Until) -> Result<(), Error> {
        let run = || IoThread::new(hall, number)?.run(until);
        if number > 0 {
            return run();
        }
        beside(vec![self.listening(hall, until)], until, run)
    }

    /// Is an I/O thread that executes and accepts.
    fn be_process(&self, hall: &Hall, number: usize, until: &Until) -> Result<(), Error> {
        let mut io_thread = IoThread::new(hall, number)?;
        if let Some(reception) = &hall.reception {
            io_thread.open_door(Door {
                listener: &self.listener,
                reception,
            })?;
        }
        io_thread.run(until)
    }

    fn listening<'a>(&'a self, hall: &'a Hall, until: &'a Until) -> Work<'a> {
        Work {
            name: "listener".to_owned(),
            run: Box::new(|| {
                let ended = listener::run(hall, &self.listener, until);
                // Who serves a queue sleeps where only requests wake him.
                let queues = hall.run_queue.iter().chain(&hall.disk_queue);
                queues.for_each(RunQueue::nudge);
                ended
            }),
        }
    }
}

/// What a thread of an engine is to do.
struct Work<'a> {
    name: String,
    run: Box<dyn FnOnce() -> Result<(), Error> + Send + 'a>,
}

/// Runs with threads beside; all of them end when one does. The first error.
fn beside(
    threads: Vec<Work>,
    until: &Until,
    run: impl FnOnce() -> Result<(), Error>,
) -> Result<(), Error> {
    std::thread::scope(|scope| {
        let mut started: Vec<ScopedJoinHandle<Result<(), Error>>> = Vec::new();
        let mut ended = Ok(());
        for Work { name, run } in threads {
            let work = move || {
                let _guard = GivesUp(until);
                run()
            };
            let thread = Builder::new().name(name.clone());
            match thread.spawn_scoped(scope, work) {
                Ok(thread) => started.push(thread),
                Err(error) => {
                    ended = Err(error).when(|| format!("start the thread {name}"));
                    break;
                }
            }
        }
        if ended.is_ok() {
            let _guard = GivesUp(until);
            ended = run();
        }
        until.give_up();
        started.into_iter().fold(ended, |ended, thread| {
            let result = thread.join();
            ended.and(result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })
    })
}

/// Whoever ends or panics takes the others with him: half a server serves nobody.
struct GivesUp<'a>(&'a Until<'a>);

impl Drop for GivesUp<'_> {
    fn drop(&mut self) {
        self.0.give_up();
    }
}
