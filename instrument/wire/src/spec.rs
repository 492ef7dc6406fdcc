//! What the runner is asked to do: one trial.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One fresh-process measurement of one cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrialSpec {
    /// Version of this format; the runner refuses one it does not know.
    pub format: u32,
    /// Identity of the trial, echoed in the record and put into `CONCURVE_TRIAL`.
    pub trial: String,
    /// Process groups, started in this order.
    pub roles: Vec<RoleSpec>,
    /// Limit on the whole trial, from the first release; absent: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit_ns: Option<u64>,
    /// Time a serving role has between SIGTERM and SIGKILL.
    #[serde(default = "default_stop_grace_ns")]
    pub stop_grace_ns: u64,
    /// Bytes of each output stream that are kept: half from its head, half from its tail.
    #[serde(default = "default_output_bytes_max")]
    pub output_bytes_max: u64,
    /// Threads listed one by one in each role's record; further ones count in totals only.
    #[serde(default = "default_threads_listed_max")]
    pub threads_listed_max: u32,
    /// How often `/proc` is read.
    #[serde(default)]
    pub sampling: Sampling,
    /// Whether the misses of the CPU's caches are counted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cache_misses: bool,
}

/// The sampler keeps to both bounds: never more often than the interval, and in the long run no more CPU
/// time than the share. In the first 170 ms it may take 0.01 more, because short trials have few samples.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sampling {
    /// Shortest time between two samples.
    #[serde(default = "default_interval_ns_min")]
    pub interval_ns_min: u64,
    /// Greatest share of one CPU that sampling may take (0.005 is half a percent).
    #[serde(default = "default_cpu_share_max")]
    pub cpu_share_max: f64,
    /// Whether the record says what each thread did in the course of the trial.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub thread_timelines: bool,
}

impl Default for Sampling {
    fn default() -> Self {
        Self {
            interval_ns_min: default_interval_ns_min(),
            cpu_share_max: default_cpu_share_max(),
            thread_timelines: false,
        }
    }
}

/// A process group of the trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoleSpec {
    /// Unique in the trial: `target`, `load`, `background`, `verify`, …
    pub name: String,
    /// Program and arguments; the program is looked up in the role's `PATH`. Empty for an attached
    /// role.
    #[serde(default)]
    pub argv: Vec<String>,
    /// The processes of an attached role: they run already, are accounted, and are left alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attach: Option<Attach>,
    /// Variables set over the inherited environment.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Working directory; absent: the runner's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// What is done to the process before it starts.
    #[serde(default)]
    pub controls: Controls,
    /// When the role ends.
    #[serde(default)]
    pub end: End,
    /// When roles that come later in the list may start.
    #[serde(default)]
    pub ready: Ready,
    /// What must be seen of the role, beside `ready`, before later roles may start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_probe: Option<ReadyProbe>,
    /// Time from its release until the role must be ready; absent: the limit of the trial alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_limit_ns: Option<u64>,
    /// Roles that must have exited before this one starts.
    #[serde(default)]
    pub after: Vec<String>,
}

/// Settings of a process; absent: inherited.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Controls {
    /// CPUs the process may run on, ascending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<Vec<u32>>,
    /// Nice value, −20…19.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nice: Option<i32>,
    /// Scheduling policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
}

/// A Linux scheduling policy with its static priority (0 for all but fifo and rr).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    pub class: PolicyClass,
    #[serde(default)]
    pub priority: u32,
}

/// Scheduling classes of `sched(7)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PolicyClass {
    Other,
    Batch,
    Idle,
    Fifo,
    Rr,
    Deadline,
    Ext,
}

/// When a role ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// Runs to its own exit, and the trial waits for it.
    #[default]
    Exit,
    /// Serves until every `exit` role is done, then gets SIGTERM.
    Serve,
}

/// When a role counts as ready.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ready {
    /// As soon as it runs.
    #[default]
    Launch,
    /// When it writes `{"ready":true}` to its report channel.
    Report,
}

/// What is seen of a role from outside once it is ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadyProbe {
    /// Connections are accepted at this address, `HOST:PORT`.
    Tcp(String),
    /// A line of its standard output or standard error matches this regular expression.
    Line(String),
    /// A command, started again and again in the role's environment, exits with 0.
    Command(Vec<String>),
}

/// Which processes an attached role has, their descendants included.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Attach {
    /// A process and its descendants.
    Process(AttachedProcess),
    /// The processes of a cgroup and of those below it, by the path of its folder.
    Cgroup(String),
}

/// A process that was there before the trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttachedProcess {
    pub pid: u32,
    /// Its start after boot, in ticks, as `/proc/PID/stat` says: a number is used again.
    pub started_ticks: u64,
}

fn default_stop_grace_ns() -> u64 {
    5_000_000_000
}

fn default_output_bytes_max() -> u64 {
    65_536
}

fn default_threads_listed_max() -> u32 {
    1024
}

fn default_interval_ns_min() -> u64 {
    10_000_000
}

fn default_cpu_share_max() -> f64 {
    0.005
}
