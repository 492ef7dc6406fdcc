//! The golden report lines of `schema/golden` parse, and come out as they went in.

use concurve_reporter::line::ReportLine;
use serde_json::Value;

#[test]
fn report_lines_come_out_as_they_went_in() {
    let text = include_str!("../../../schema/golden/report-lines-1.jsonl");
    assert!(text.lines().count() > 0);
    for line in text.lines() {
        let report: ReportLine = serde_json::from_str(line).unwrap();
        let expected: Value = serde_json::from_str(line).unwrap();
        assert_eq!(serde_json::to_value(&report).unwrap(), expected);
    }
}
