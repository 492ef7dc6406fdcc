//! Where sectors lie: zones of cylinders, tracks, angles.

use crate::time::Time;

/// Cylinders with equally many sectors a track; the outer zones come first and hold more.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Zone {
    pub cylinders: u32,
    pub sectors_per_track: u32,
}

/// The geometry of a disk: zones, surfaces and skews.
#[derive(Debug, Clone, PartialEq)]
pub struct Shape {
    pub zones: Vec<Zone>,
    /// Surfaces: tracks of a cylinder.
    pub heads: u32,
    pub revolution: Time,
    /// The skew: the first sector of a track lies this much behind that of the previous track, so
    /// that it arrives when the next head is ready, or the arm has reached the next cylinder.
    pub head_skew: Time,
    pub cylinder_skew: Time,
}

/// Where a sector lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub cylinder: u32,
    pub head: u32,
    /// When in a revolution its beginning passes under the head.
    pub angle: Time,
    /// Its number within the track, and how many there are.
    pub in_track: u32,
    pub sectors_per_track: u32,
}

/// A shape with what is computed from it once.
#[derive(Debug, Clone)]
pub struct Geometry {
    shape: Shape,
    /// First sector and first cylinder of each zone, and their ends.
    starts: Vec<(u64, u32)>,
    cylinders: u32,
    sectors: u64,
}

impl Geometry {
    pub fn new(shape: Shape) -> Self {
        let (mut sectors, mut cylinders) = (0, 0);
        let mut starts = Vec::new();
        for zone in &shape.zones {
            starts.push((sectors, cylinders));
            let tracks = u64::from(zone.cylinders) * u64::from(shape.heads);
            sectors += tracks * u64::from(zone.sectors_per_track);
            cylinders += zone.cylinders;
        }
        Self {
            shape,
            starts,
            cylinders,
            sectors,
        }
    }

    pub fn sectors(&self) -> u64 {
        self.sectors
    }

    pub fn cylinders(&self) -> u32 {
        self.cylinders
    }

    pub fn revolution(&self) -> Time {
        self.shape.revolution
    }

    pub fn head_skew(&self) -> Time {
        self.shape.head_skew
    }

    /// Where a sector lies.
    pub fn place(&self, sector: u64) -> Place {
        debug_assert!(sector < self.sectors, "a sector of the disk");
        let zone = self.starts.partition_point(|it| it.0 <= sector) - 1;
        let (first_sector, first_cylinder) = self.starts[zone];
        let per_track = u64::from(self.shape.zones[zone].sectors_per_track);
        let within = sector - first_sector;
        let (track, in_track) = (within / per_track, within % per_track);
        let heads = u64::from(self.shape.heads);
        let cylinder = first_cylinder + (track / heads) as u32;
        let head = (track % heads) as u32;
        let turned = self.skew(cylinder, head) + in_track * self.shape.revolution / per_track;
        Place {
            cylinder,
            head,
            angle: turned % self.shape.revolution,
            in_track: in_track as u32,
            sectors_per_track: per_track as u32,
        }
    }

    /// By how much the tracks up to this one are turned against the first.
    fn skew(&self, cylinder: u32, head: u32) -> Time {
        let Shape {
            heads,
            head_skew,
            cylinder_skew,
            ..
        } = self.shape;
        let of_cylinder = u64::from(heads - 1) * head_skew + cylinder_skew;
        u64::from(cylinder) * of_cylinder + u64::from(head) * head_skew
    }

    /// How long `sectors` pass under the heads from `from` on, track and cylinder changes
    /// included. Density is that of the first sector's zone.
    pub fn transfer(&self, from: &Place, sectors: u64) -> Time {
        let per_track = u64::from(from.sectors_per_track);
        let reading = sectors * self.shape.revolution / per_track;
        let last = (u64::from(from.in_track) + sectors).saturating_sub(1);
        let tracks = last / per_track;
        if tracks == 0 {
            return reading;
        }
        let heads = u64::from(self.shape.heads);
        let cylinders = (u64::from(from.head) + tracks) / heads;
        reading + (tracks - cylinders) * self.shape.head_skew + cylinders * self.shape.cylinder_skew
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> Geometry {
        let zone = |cylinders, sectors_per_track| Zone {
            cylinders,
            sectors_per_track,
        };
        Geometry::new(Shape {
            zones: vec![zone(2, 100), zone(3, 50)],
            heads: 2,
            revolution: 4_000_000,
            head_skew: 500_000,
            cylinder_skew: 800_000,
        })
    }

    #[test]
    fn sectors_fill_tracks_then_heads_then_cylinders_then_zones() {
        let disk = small();
        assert_eq!((disk.sectors(), disk.cylinders()), (700, 5));
        let at = |sector| {
            let it = disk.place(sector);
            (it.cylinder, it.head, it.in_track, it.sectors_per_track)
        };
        assert_eq!(at(0), (0, 0, 0, 100));
        assert_eq!(at(199), (0, 1, 99, 100));
        assert_eq!(at(200), (1, 0, 0, 100));
        assert_eq!(at(400), (2, 0, 0, 50));
        assert_eq!(at(699), (4, 1, 49, 50));
    }

    /// The angle of a sector that is read on from an earlier one is where the disk then is.
    #[test]
    fn skews_let_reading_go_on_over_tracks_and_cylinders() {
        let disk = small();
        let start = disk.place(30);
        for sectors in [1, 69, 70, 71, 170, 171, 250, 370] {
            let then = disk.place(30 + sectors);
            let read = disk.transfer(&start, sectors);
            // The change to the next track is made when its first sector is wanted.
            let change = match then.in_track {
                0 if then.head == 0 => 800_000,
                0 => 500_000,
                _ => 0,
            };
            let angle = (start.angle + read + change) % disk.revolution();
            assert_eq!(angle, then.angle, "{sectors} sectors on");
        }
    }
}
