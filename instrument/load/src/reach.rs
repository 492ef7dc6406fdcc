//! What the client threads of a process share: how to reach a server, or an engine that is open.

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use crate::client;
use crate::crew::Said;
use crate::embedded::{self, Engine};
use crate::error::Error;
use crate::plan::{Link, Plan, Reach};
use crate::stop::Stop;
use crate::task::Task;

/// A server to connect to, or an engine.
#[derive(Debug, Clone)]
pub enum Reached {
    Server(Link),
    Engine(Arc<dyn Engine>),
}

impl Reached {
    /// Opens an engine; a server is connected to by each session.
    pub fn open(plan: &Plan) -> Result<Self, Error> {
        Ok(match &plan.reach {
            Reach::Server(link) => Self::Server(link.clone()),
            Reach::Engine(engine) => Self::Engine(engine.open()?),
        })
    }

    /// The life of a client thread.
    pub fn serve(
        &self,
        plan: &Plan,
        number: u64,
        stop: &Stop,
        tasks: &Receiver<Task>,
        say: &mut dyn FnMut(Said),
    ) -> Result<(), Error> {
        match self {
            Self::Server(link) => client::run(plan, link, number, stop, tasks, say),
            Self::Engine(engine) => Ok(embedded::run(plan, &**engine, number, stop, tasks, say)?),
        }
    }

    /// Closes an engine, when all threads have ended.
    pub fn close(&self) -> Result<(), Error> {
        match self {
            Self::Server(_) => Ok(()),
            Self::Engine(engine) => Ok(engine.close()?),
        }
    }
}
