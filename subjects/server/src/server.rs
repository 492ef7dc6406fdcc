//! The server from its start to its end.

use std::net::TcpListener;
use std::time::Duration;

use concurve_engines::Plan;
use concurve_reporter::Reporter;

use crate::error::{Error, While};
use crate::service::Server;
use crate::settings::Settings;

/// Deaths in a row, each within a second of the start, after which the server ends.
const QUICK_DEATHS_MAX: u32 = 5;

/// How long engines that are processes have to stop: records write back what they changed.
const STOP_WITHIN: Duration = Duration::from_secs(60);

/// Serves until SIGTERM or SIGINT.
pub fn serve(settings: Settings) -> Result<(), Error> {
    let reporter = Reporter::from_environment()?;
    let (listener, port) = listen(&settings)?;
    let plan = Plan {
        mode: settings.engines.into(),
        engines: settings.engine_count as u32,
        memory_bytes: settings.shared_memory_bytes,
        memory_remedy: "raise --shared-memory",
        quick_deaths_max: QUICK_DEATHS_MAX,
        stop_within: STOP_WITHIN,
    };
    let server = Server {
        settings,
        listener,
        port,
        reporter,
    };
    Ok(concurve_engines::serve(&plan, &server)?)
}

fn listen(settings: &Settings) -> Result<(TcpListener, u16), Error> {
    let address = settings.address;
    let listener =
        TcpListener::bind(address).map_err(|source| Error::Listen { address, source })?;
    // Again, with as long a queue as the kernel allows: many clients come at once in a trial, and
    // one that finds the usual queue of 128 full waits a second before it tries again.
    nix::sys::socket::listen(&listener, nix::sys::socket::Backlog::MAXALLOWABLE)
        .when(|| format!("lengthen the queue of {address}"))?;
    listener
        .set_nonblocking(true)
        .when(|| "set the listener to non-blocking".to_owned())?;
    let port = listener
        .local_addr()
        .when(|| "read the listener's port".to_owned())?
        .port();
    Ok((listener, port))
}
