//! Replies, in the version of the protocol that the client has chosen.

/// Version of the protocol; 2 until `HELLO 3`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Version {
    #[default]
    Two,
    Three,
}

/// Appends replies to a buffer.
#[derive(Debug)]
pub struct Writer<'a> {
    out: &'a mut Vec<u8>,
    pub version: Version,
}

impl<'a> Writer<'a> {
    pub fn new(out: &'a mut Vec<u8>, version: Version) -> Self {
        Self { out, version }
    }

    /// `+OK`
    pub fn status(&mut self, text: &str) {
        self.line(b'+', text.as_bytes());
    }

    /// `-CODE message`: the code is one word in capitals that programs may rely on.
    pub fn error(&mut self, code: &str, message: &str) {
        self.out.push(b'-');
        self.out.extend_from_slice(code.as_bytes());
        self.out.push(b' ');
        // The message may quote bytes of the client: keep it on one line.
        let plain = |byte: u8| if byte < b' ' { b'?' } else { byte };
        self.out.extend(message.bytes().map(plain));
        self.out.extend_from_slice(b"\r\n");
    }

    /// `:7`
    pub fn integer(&mut self, value: i64) {
        self.line(b':', itoa::Buffer::new().format(value).as_bytes());
    }

    /// `$5 hello`
    pub fn bulk(&mut self, bytes: &[u8]) {
        self.length(b'$', bytes.len());
        self.out.extend_from_slice(bytes);
        self.out.extend_from_slice(b"\r\n");
    }

    pub fn null(&mut self) {
        let text: &[u8] = match self.version {
            Version::Two => b"$-1\r\n",
            Version::Three => b"_\r\n",
        };
        self.out.extend_from_slice(text);
    }

    /// Begins an array; that many replies must follow.
    pub fn array(&mut self, length: usize) {
        self.length(b'*', length);
    }

    /// Begins a map; that many pairs must follow. An array of twice as many in version 2.
    pub fn map(&mut self, pairs: usize) {
        match self.version {
            Version::Two => self.length(b'*', pairs * 2),
            Version::Three => self.length(b'%', pairs),
        }
    }

    fn length(&mut self, kind: u8, length: usize) {
        self.line(kind, itoa::Buffer::new().format(length).as_bytes());
    }

    fn line(&mut self, kind: u8, text: &[u8]) {
        self.out.push(kind);
        self.out.extend_from_slice(text);
        self.out.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(version: Version, write: impl Fn(&mut Writer)) -> String {
        let mut out = Vec::new();
        write(&mut Writer::new(&mut out, version));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn both_versions_are_as_the_specification_says() {
        let all = |writer: &mut Writer| {
            writer.map(1);
            writer.bulk(b"id");
            writer.integer(-7);
            writer.null();
            writer.array(0);
            writer.status("OK");
            writer.error("ERR", "a\r\nb");
        };
        assert_eq!(
            written(Version::Two, all),
            "*2\r\n$2\r\nid\r\n:-7\r\n$-1\r\n*0\r\n+OK\r\n-ERR a??b\r\n"
        );
        assert_eq!(
            written(Version::Three, all),
            "%1\r\n$2\r\nid\r\n:-7\r\n_\r\n*0\r\n+OK\r\n-ERR a??b\r\n"
        );
    }
}
