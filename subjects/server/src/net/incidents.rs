//! What the server did against clients, and why: counts for INFO, and now and then a line on standard
//! error.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::log;
use crate::source::Source;

/// A client met a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Incident {
    /// It sent a wrong password, and stays connected.
    WrongPassword,
    /// It was not admitted, because there were too many.
    Refused,
    /// It was closed, as in all other cases: a request was incomplete, or replies unread, for too long.
    Stalled,
    /// It did not log in in time.
    LoginTimeout,
    /// It had not logged in, and made room for another one.
    Displaced,
    /// It sent too many wrong passwords.
    Guessed,
    /// It sent too many requests without logging in.
    NotWelcome,
    /// The buffers of all clients together were too large, and its were the largest.
    Memory,
    /// It sent something that is no request.
    Malformed,
}

impl Incident {
    pub const ALL: [Self; 9] = [
        Self::WrongPassword,
        Self::Refused,
        Self::Stalled,
        Self::LoginTimeout,
        Self::Displaced,
        Self::Guessed,
        Self::NotWelcome,
        Self::Memory,
        Self::Malformed,
    ];

    /// Its name in INFO.
    pub fn name(self) -> &'static str {
        match self {
            Self::WrongPassword => "wrong_passwords",
            Self::Refused => "rejected_connections",
            Self::Stalled => "closed_stalled",
            Self::LoginTimeout => "closed_login_timeout",
            Self::Displaced => "closed_for_newcomers",
            Self::Guessed => "closed_wrong_passwords",
            Self::NotWelcome => "closed_requests_before_login",
            Self::Memory => "closed_for_memory",
            Self::Malformed => "closed_malformed",
        }
    }

    /// What standard error says after the count.
    fn text(self) -> &'static str {
        match self {
            Self::WrongPassword => "sent a wrong password",
            Self::Refused => "refused: as many as --clients-max are connected",
            Self::Stalled => "closed: a request incomplete or replies unread (--stalled-s)",
            Self::LoginTimeout => "closed: no login in time (--login-timeout-s)",
            Self::Displaced => "closed: no login so far, and --clients-max are connected",
            Self::Guessed => "closed: too many wrong passwords",
            Self::NotWelcome => "closed: too many requests before the login",
            Self::Memory => {
                "closed: the largest buffers while all together exceed --maxmemory-clients"
            }
            Self::Malformed => "closed: a malformed request",
        }
    }

    /// Whether a limit closed a connection.
    fn is_limit(self) -> bool {
        !matches!(self, Self::WrongPassword | Self::Refused | Self::Malformed)
    }
}

/// Pause between two lines on standard error.
const PAUSE_MS: u64 = 10_000;

/// No line was written.
const NEVER: u64 = u64::MAX;

/// How often each incident has happened.
#[derive(Debug)]
pub struct Incidents {
    counts: [AtomicU64; Incident::ALL.len()],
    /// The counts of which standard error has told.
    told: [AtomicU64; Incident::ALL.len()],
    told_at_ms: AtomicU64,
    /// The client of the last one.
    last: AtomicU64,
}

impl Default for Incidents {
    fn default() -> Self {
        Self {
            counts: Default::default(),
            told: Default::default(),
            told_at_ms: AtomicU64::new(NEVER),
            last: AtomicU64::new(Source::UNKNOWN.to_bits()),
        }
    }
}

impl Incidents {
    pub fn add(&self, incident: Incident, source: Source) {
        self.last.store(source.to_bits(), Relaxed);
        self.counts[incident as usize].fetch_add(1, Relaxed);
    }

    pub fn count(&self, incident: Incident) -> u64 {
        self.counts[incident as usize].load(Relaxed)
    }

    /// Connections that were closed by a limit, whichever it was.
    pub fn closed_by_limits(&self) -> u64 {
        let limits = Incident::ALL.into_iter().filter(|it| it.is_limit());
        limits.map(|it| self.count(it)).sum()
    }

    /// Tells of new incidents on standard error: not too often, and without waiting for its reader.
    pub fn tell(&self, now_ms: u64) {
        if self.is_due(now_ms) && log::has_room() {
            self.tell_all();
        }
    }

    /// Tells of all new incidents, because the server ends.
    pub fn tell_all(&self) {
        if let Some(text) = self.news() {
            log::tell(text);
        }
    }

    /// Whether a line may be written now. Only one of several threads that ask at the same time may.
    fn is_due(&self, now_ms: u64) -> bool {
        let told_at_ms = self.told_at_ms.load(Relaxed);
        let is_due = told_at_ms == NEVER || now_ms >= told_at_ms + PAUSE_MS;
        let has_news = || Incident::ALL.into_iter().any(|it| self.untold(it) > 0);
        is_due
            && has_news()
            && self
                .told_at_ms
                .compare_exchange(told_at_ms, now_ms, Relaxed, Relaxed)
                .is_ok()
    }

    fn untold(&self, incident: Incident) -> u64 {
        let told = self.told[incident as usize].load(Relaxed);
        self.count(incident).saturating_sub(told)
    }

    /// The incidents since the last call.
    fn news(&self) -> Option<String> {
        let mut text = String::new();
        for incident in Incident::ALL {
            let untold = self.untold(incident);
            if untold > 0 {
                self.told[incident as usize].fetch_add(untold, Relaxed);
                let begin = if text.is_empty() { "clients:" } else { ";" };
                let _ = write!(text, "{begin} {untold} {}", incident.text());
            }
        }
        let last = Source::from_bits(self.last.load(Relaxed));
        (!text.is_empty()).then(|| format!("{text}; the last from {last}"))
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    #[test]
    fn each_incident_is_told_once_and_with_a_pause() {
        let incidents = Incidents::default();
        assert!(!incidents.is_due(5), "there is nothing to tell");
        let source: Source = "10.0.0.7".parse::<IpAddr>().unwrap().into();
        incidents.add(Incident::WrongPassword, source);
        incidents.add(Incident::Stalled, source);
        incidents.add(Incident::Stalled, source);
        assert!(incidents.is_due(5));
        assert!(!incidents.is_due(5), "another thread tells");
        assert_eq!(
            incidents.news().unwrap(),
            "clients: 1 sent a wrong password; 2 closed: a request incomplete or replies unread \
             (--stalled-s); the last from 10.0.0.7"
        );
        assert_eq!(incidents.news(), None);
        incidents.add(Incident::Memory, Source::UNKNOWN);
        assert!(!incidents.is_due(5 + PAUSE_MS - 1));
        assert!(incidents.is_due(5 + PAUSE_MS));
        assert!(incidents.news().unwrap().starts_with("clients: 1 closed"));
        assert_eq!(incidents.closed_by_limits(), 3);
    }

    #[test]
    fn each_incident_has_a_count_of_its_own() {
        let incidents = Incidents::default();
        for (at, incident) in Incident::ALL.into_iter().enumerate() {
            assert_eq!(incident as usize, at);
            incidents.add(incident, Source::UNKNOWN);
            assert_eq!(incidents.count(incident), 1);
        }
        let names: std::collections::HashSet<_> =
            Incident::ALL.iter().map(|it| it.name()).collect();
        assert_eq!(names.len(), Incident::ALL.len());
    }
}
