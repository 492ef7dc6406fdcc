//! Disks by name.

use super::Model;
use super::geometry::{Shape, Zone};
use super::seek::{self, SeekCurve};
use crate::time::{MICROSECOND, milliseconds};

/// A SCSI disk of 36 GB with 15,000 revolutions a minute, as document 003 had three.
///
/// The document names no model. Products of the time: an average seek of 3.0 to 4.1 ms, up to
/// 98 MB/s (so at most 392 KB a track); the settling time, the zones and the overhead are assumed.
pub fn scsi_36gb_15k() -> Model {
    let heads = 4;
    // 784 sectors a track outside (98 MB/s) down to 560 inside, in eight zones.
    let zones = (0..8)
        .map(|zone| Zone {
            cylinders: 3_285,
            sectors_per_track: 784 - zone * 32,
        })
        .collect();
    Model {
        shape: Shape {
            zones,
            heads,
            revolution: milliseconds(4.0),
            head_skew: milliseconds(0.3),
            cylinder_skew: milliseconds(0.5),
        },
        seek: SeekCurve::with_average(seek::Shape::Root, 0.3, 3.5),
        overhead: 100 * MICROSECOND,
        // Ultra320: 320 MB/s.
        bus_sector: 1_600,
        read_ahead: 1024,
        write_cache: 0,
        queue_depth: 1,
    }
}
