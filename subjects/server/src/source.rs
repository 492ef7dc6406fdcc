//! Where a client comes from.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The address of a client; of IPv6 its network of 64 bits, because whoever has one address of such a
/// network has all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Source(u64);

/// Marks an address of IPv4. As a network of IPv6 it would be one that is reserved (RFC 4291, 2.5).
const VERSION_4: u64 = 1 << 32;

impl Source {
    /// The client had gone before it was asked for.
    pub const UNKNOWN: Self = Self(u64::MAX);

    /// As a number that an atomic can hold.
    pub fn to_bits(self) -> u64 {
        self.0
    }

    /// The source with this number.
    pub fn from_bits(bits: u64) -> Self {
        Self(bits)
    }
}

impl From<IpAddr> for Source {
    fn from(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V4(address) => VERSION_4 | u64::from(address.to_bits()),
            IpAddr::V6(address) => (address.to_bits() >> 64) as u64,
        })
    }
}

impl fmt::Display for Source {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        match self.0 >> 32 {
            1 => Ipv4Addr::from_bits(self.0 as u32).fmt(out),
            _ if *self == Self::UNKNOWN => out.write_str("an unknown address"),
            _ => write!(out, "{}/64", Ipv6Addr::from_bits(u128::from(self.0) << 64)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        text.parse::<IpAddr>().unwrap().into()
    }

    #[test]
    fn addresses_of_one_network_of_ipv6_are_one_source() {
        for (text, shown) in [
            ("127.0.0.1", "127.0.0.1"),
            ("255.255.255.255", "255.255.255.255"),
            ("::ffff:10.1.2.3", "10.1.2.3"),
            ("::1", "::/64"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ] {
            let source = source(text);
            assert_eq!(source.to_string(), shown);
            assert_eq!(Source::from_bits(source.to_bits()), source);
        }
        assert_eq!(source("2001:db8::1"), source("2001:db8::2"));
        assert_ne!(source("2001:db8::1"), source("2001:db8:0:1::1"));
        assert_ne!(source("10.0.0.1"), source("10.0.0.2"));
        assert_eq!(Source::UNKNOWN.to_string(), "an unknown address");
    }
}
