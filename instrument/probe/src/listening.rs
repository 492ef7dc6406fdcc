//! `/proc/PID/net/tcp` and `tcp6`: where sockets listen. Their addresses are words of memory as the machine holds
//! them, in hexadecimal digits.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The state of a socket that listens.
const LISTENS: &str = "0A";

/// The listening sockets of a table: the number of each, and its address. Lines of another form are left out.
pub fn parse(text: &str) -> Vec<(u64, SocketAddr)> {
    text.lines().filter_map(listening).collect()
}

/// The number of the socket that a link `/proc/PID/fd/N` names.
pub fn socket_of(link: &str) -> Option<u64> {
    let number = link.strip_prefix("socket:[")?.strip_suffix(']')?;
    number.parse().ok()
}

fn listening(line: &str) -> Option<(u64, SocketAddr)> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let (local, state, inode) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
    if *state != LISTENS {
        return None;
    }
    let (address, port) = local.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    Some((inode.parse().ok()?, SocketAddr::new(ip(address)?, port)))
}

fn ip(digits: &str) -> Option<IpAddr> {
    let word = |at: usize| {
        let word = u32::from_str_radix(digits.get(at..at + 8)?, 16).ok()?;
        Some(word.to_ne_bytes())
    };
    match digits.len() {
        8 => Some(Ipv4Addr::from(word(0)?).into()),
        32 => {
            let mut bytes = [0; 16];
            for (part, to) in bytes.chunks_exact_mut(4).enumerate() {
                to.copy_from_slice(&word(8 * part)?);
            }
            Some(Ipv6Addr::from(bytes).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a little-endian machine, which all are on which this runs.
    const TCP: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:4C17 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 70123 1 0 100 0 0 10 0
   1: 0100007F:4C17 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 70125 1 0 20 4 30 10 -1
";
    const TCP6: &str = "\
  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000000000000000000001000000:1F90 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0 100 0 0 10 0
";

    #[cfg(target_endian = "little")]
    #[test]
    fn sockets_that_listen_have_their_addresses() {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        assert_eq!(parse(TCP), [(70123, address("127.0.0.1:19479"))]);
        assert_eq!(parse(TCP6), [(4711, address("[::1]:8080"))]);
        assert_eq!(parse("no table\n 0: x:y z 0A"), []);
    }

    #[test]
    fn a_link_names_a_socket() {
        assert_eq!(socket_of("socket:[70123]"), Some(70123));
        assert_eq!(socket_of("pipe:[70123]"), None);
        assert_eq!(socket_of("socket:[]"), None);
    }
}
