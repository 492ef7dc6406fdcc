//! A search for a rate by several processes, on one machine or on several: one of them *leads*, the others
//! *follow* it. The leader chooses each rate; all of them send their share of it at the same time, by the
//! number of their sessions; the counts of all are judged as one. Without that each would search while the
//! others vary their rates, and what it found would hold for no load that is known.
//!
//! `meeting.rs`: where they meet, and the token by which they know each other. `link.rs`: a connection, its
//! messages and the proofs. `leader.rs`: the followers, as the leader sees them. `follower.rs`: the rest of
//! the life of a process that follows.

mod follower;
mod leader;
mod link;
mod meeting;
mod messages;

pub use follower::{Followed, follow};
pub use leader::{Counted, Followers, Leader};
pub use meeting::{Meeting, Token};
pub use messages::Share;
