//! The lines that a measured program may write to its report channel, one JSON object each.

use serde::{Deserialize, Serialize};

/// One line of the report channel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ReportLine {
    /// `{"ready":true}`: the program is up; roles that wait for it may start.
    Ready(ReadyLine),
    /// `{"phase":"measure","edge":"begin"}`: a phase begins or ends.
    Phase(PhaseLine),
    /// `{"indicator":"compute_seconds","value":4.93,"unit":"s"}`.
    Indicator(IndicatorLine),
    /// `{"fact":"jvm","value":"17.0.15"}`: something worth knowing about the program.
    Fact(FactLine),
    /// `{"histogram":"latency","unit":"ns","encoded":"HISTFAAA…"}`: HdrHistogram V2, base64.
    Histogram(HistogramLine),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadyLine {
    pub ready: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhaseLine {
    pub phase: String,
    pub edge: Edge,
    /// CLOCK_MONOTONIC at the edge, if the program can read it; else the time of receipt counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_ns: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Edge {
    Begin,
    End,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IndicatorLine {
    /// Name in snake case, unit last.
    pub indicator: String,
    pub value: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Worker the figure belongs to; absent: the whole program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FactLine {
    pub fact: String,
    pub value: serde_json::Value,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HistogramLine {
    pub histogram: String,
    pub unit: String,
    /// Base64 of the HdrHistogram V2 (compressed or not) serialisation.
    pub encoded: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<String>,
}
