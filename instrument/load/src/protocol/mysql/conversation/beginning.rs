//! How a conversation begins: handshake, log-in, variables, and preparing all statements.

use super::{Connection, Stage};
use crate::protocol::mysql::handshake::{Handshake, Switch};
use crate::protocol::mysql::password::Method;
use crate::protocol::mysql::reply::{Prepared, ServerError};
use crate::protocol::mysql::{Greeting, garbled, packet, refusal, request};
use crate::protocol::{Message, ProtocolError};

const OK: u8 = 0x00;
const MORE: u8 = 0x01;
const SWITCH: u8 = 0xfe;
/// What "caching_sha2_password" says: it knows the password already, or wants all of it.
const KNOWN: &[u8] = &[3];
const WANTED: &[u8] = &[4];

impl Connection {
    /// The server's first words.
    pub(super) fn shake(
        &mut self,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Message, ProtocolError> {
        if let Some(error) = ServerError::parse(payload) {
            return Err(refusal::of_login(&error));
        }
        let handshake = Handshake::parse(payload)?;
        self.stage = Stage::Login(handshake.method);
        self.say(out, |greeting, out| handshake.put_answer(greeting, out));
        Ok(Message::Aside)
    }

    pub(super) fn log_in(
        &mut self,
        method: Method,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Message, ProtocolError> {
        if let Some(error) = ServerError::parse(payload) {
            return Err(refusal::of_login(&error));
        }
        match payload.split_first() {
            Some((&OK, _)) => return Ok(self.logged_in(out)),
            Some((&SWITCH, request)) => {
                let switch = Switch::parse(request);
                let method = Method::named(switch.plugin)
                    .ok_or_else(|| refusal::of_plugin(switch.plugin))?;
                self.stage = Stage::Login(method);
                self.say(out, |greeting, out| {
                    out.extend(method.answer(greeting.password(), switch.scramble));
                });
            }
            Some((&MORE, KNOWN)) if method == Method::CachingSha2 => {}
            Some((&MORE, WANTED)) if method == Method::CachingSha2 => {
                if !self.shared.greeting.local {
                    return Err(refusal::of_whole_password());
                }
                self.say(out, |greeting, out| {
                    out.extend_from_slice(greeting.password().as_bytes());
                    out.push(0);
                });
            }
            _ => return Err(garbled(payload)),
        }
        Ok(Message::Aside)
    }

    /// Writes a packet of the log-in.
    fn say(&mut self, out: &mut Vec<u8>, fill: impl FnOnce(&Greeting, &mut Vec<u8>)) {
        let greeting = &self.shared.greeting;
        let sequence = self.sequence.unwrap_or(0);
        self.sequence = Some(packet::put(sequence, out, |out| fill(greeting, out)));
    }

    /// Asks to set the variables and to prepare all statements, together.
    fn logged_in(&mut self, out: &mut Vec<u8>) -> Message {
        let settings = &self.shared.greeting.settings;
        self.awaited.push_back(request::put_settings(settings, out));
        for template in self.shared.templates.iter().filter(|it| !it.is_new) {
            self.awaited.push_back(template.put_prepare(out));
        }
        self.stage = Stage::Setting;
        self.sequence = None;
        Message::Aside
    }

    pub(super) fn after_setting(&mut self, payload: &[u8]) -> Result<Message, ProtocolError> {
        match ServerError::parse(payload) {
            Some(error) => Err(refusal::of_statement("SET SESSION", &error)),
            None => {
                self.stage = Stage::Preparing(0);
                self.answered();
                Ok(self.ready_if_prepared())
            }
        }
    }

    pub(super) fn prepare(&mut self, payload: &[u8]) -> Result<Message, ProtocolError> {
        let template = &self.shared.templates[self.prepared.len()];
        if let Some(error) = ServerError::parse(payload) {
            if error.code != refusal::CANNOT_BE_PREPARED || template.parameters() > 0 {
                return Err(refusal::of_statement(&template.text, &error));
            }
            self.prepared.push(None);
            return Ok(self.after_preparing(0));
        }
        let prepared = Prepared::parse(payload).ok_or_else(|| garbled(payload))?;
        if prepared.parameters != template.parameters() {
            return Err(refusal::of_parameters(&template.text, prepared.parameters));
        }
        self.prepared.push(Some(prepared.id));
        Ok(self.after_preparing(prepared.packets))
    }

    /// Goes on with the next statement when nothing is left to come about the last.
    pub(super) fn after_preparing(&mut self, left: usize) -> Message {
        self.stage = Stage::Preparing(left);
        if left > 0 {
            return Message::Aside;
        }
        self.answered();
        self.ready_if_prepared()
    }

    fn ready_if_prepared(&mut self) -> Message {
        let next = |it: &Self| {
            it.shared
                .templates
                .get(it.prepared.len())
                .map(|it| it.is_new)
        };
        while next(self) == Some(true) {
            self.prepared.push(None);
        }
        if self.prepared.len() < self.shared.templates.len() {
            return Message::Aside;
        }
        self.stage = Stage::Ready;
        Message::Greeted
    }
}
