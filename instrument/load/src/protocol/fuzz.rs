//! A server that says anything, in any pieces.

use concurve_fuzz::{Counting, Draw};

use super::{Conversation, Message};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// More than any conversation needs for an input of some kilobytes.
pub const MEMORY_MAX: u64 = 1 << 20;

/// Hands an input over in pieces, until it ends or is refused.
pub fn converse(conversation: &mut dyn Conversation, input: &[u8], draw: &mut Draw) {
    let (mut unread, mut out, mut rest) = (Vec::new(), Vec::new(), input);
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(1 + draw.below(rest.len()));
        unread.extend_from_slice(piece);
        rest = after;
        while !unread.is_empty() {
            let Ok(received) = conversation.receive(&unread, &mut out) else {
                return;
            };
            let is_over = received.message == Message::Partial;
            assert!(
                is_over || received.consumed > 0,
                "it goes on without a byte"
            );
            unread.drain(..received.consumed);
            if is_over {
                break;
            }
        }
    }
}
