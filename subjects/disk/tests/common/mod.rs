//! Machines of one simple disk, whose times have closed forms.

use concurve_disk::Machine;
use concurve_disk::disk::Model;
use concurve_disk::disk::geometry::{Shape, Zone};
use concurve_disk::disk::seek::{self, SeekCurve};
use concurve_disk::machine::Layout;
use concurve_disk::scheduler::kind::Kind;
use concurve_disk::time::milliseconds;

/// One zone, so that sectors are spread evenly over the cylinders; nothing cached.
pub fn plain_disk() -> Model {
    Model {
        shape: Shape {
            zones: vec![Zone {
                cylinders: 20_000,
                sectors_per_track: 700,
            }],
            heads: 4,
            revolution: milliseconds(4.0),
            head_skew: milliseconds(0.3),
            cylinder_skew: milliseconds(0.5),
        },
        seek: SeekCurve::with_average(seek::Shape::Root, 0.3, 3.5),
        overhead: milliseconds(0.1),
        bus_sector: 1_600,
        read_ahead: 0,
        write_cache: 0,
        queue_depth: 1,
    }
}

pub const SECTORS: u64 = 20_000 * 700 * 4;

pub fn one_disk(disk: Model, scheduler: Kind) -> Machine {
    Machine {
        disk,
        disks: 1,
        layout: Layout::Linear,
        scheduler,
        tuned: Default::default(),
        before: 0,
    }
}
